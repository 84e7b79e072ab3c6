#include "theseus/base/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace theseus {
namespace {

// More threads than this get in each other's way at the driver.
constexpr size_t kThreads = 6;

// Memory goes back to the stream that it came from, for the next task there: so a task's work is done when
// the task is, and not only queued.
void run_on_own_stream(c10::Device device, const std::function<void()>& work) {
  const c10::impl::VirtualGuardImpl gpu(device.type());
  const auto stream = gpu.getStreamFromGlobalPool(device);
  const c10::StreamGuard guard(stream);
  try {
    work();
  } catch (...) {
    stream.synchronize();
    throw;
  }
  stream.synchronize();
}

// libtorch loads its linear algebra for GPUs when it is first asked for some, and must not be asked by two
// threads then.
void load_linear_algebra(c10::Device device) {
  static std::once_flag loaded;
  std::call_once(loaded, [&] {
    at::linalg_cholesky(at::ones({1, 1}, at::TensorOptions(device).dtype(at::kDouble)));
  });
}

}  // namespace

void finish_queued(c10::Device device) {
  if (!device.is_cpu()) {
    c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
  }
}

void run_side_by_side(c10::Device device, const std::vector<std::function<void()>>& tasks) {
  if (device.is_cpu() || tasks.size() < 2) {
    for (const auto& task : tasks) {
      task();
    }
    return;
  }
  load_linear_algebra(device);
  finish_queued(device);
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (auto i = next++; i < tasks.size(); i = next++) {
      tasks[i]();
    }
  };
  std::vector<std::future<void>> threads;
  for (size_t i = 0; i < std::min(kThreads, tasks.size()); ++i) {
    threads.push_back(std::async(std::launch::async, [&] { run_on_own_stream(device, work); }));
  }
  std::exception_ptr failure;
  for (auto& thread : threads) {
    try {
      thread.get();
    } catch (...) {
      failure = failure ? failure : std::current_exception();
    }
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

Aside::~Aside() {
  if (running_.valid()) {
    running_.wait();
  }
}

void Aside::run(std::function<void()> task) {
  wait();
  if (device_.is_cpu()) {
    task();
    return;
  }
  finish_queued(device_);
  running_ = std::async(std::launch::async, [device = device_, task = std::move(task)] {
    run_on_own_stream(device, task);
  });
}

void Aside::wait() {
  if (running_.valid()) {
    running_.get();
  }
}

}  // namespace theseus
