#include "theseus/base/interrupts.h"

#include <atomic>
#include <csignal>

namespace theseus {
namespace {

std::atomic<int> uninterrupted = 0;
std::atomic<int> waiting_signal = 0;
std::atomic<int> whole_outputs = 0;

}  // namespace

Uninterrupted::Uninterrupted() {
  ++uninterrupted;
}

Uninterrupted::~Uninterrupted() {
  if (--uninterrupted == 0) {
    if (const int signal = waiting_signal.exchange(0)) {
      std::raise(signal);
    }
  }
}

// It is noted first: a destructor that another thread runs meanwhile finds it, or this function does.
bool must_wait(int signal) noexcept {
  waiting_signal = signal;
  return uninterrupted > 0 || waiting_signal.exchange(0) == 0;
}

void count_output() noexcept {
  ++whole_outputs;
}

int outputs_there() noexcept {
  return whole_outputs;
}

}  // namespace theseus
