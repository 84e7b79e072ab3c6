#include "theseus/base/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "theseus/base/device.h"

extern "C" void omp_set_num_threads(int count) __attribute__((weak));  // of libtorch's OpenMP

namespace theseus {
namespace {

// More threads than this get in each other's way at the driver.
constexpr size_t kThreads = 6;

using Work = std::function<void()>;

// Null: it threw nothing.
std::exception_ptr failure_of(const Work& work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// Several hands work at once, and each would take all cores for what it does on the host. at::set_num_threads() would be for
// all threads that have not computed yet.
void use_few_cores() {
  const auto all = at::get_num_threads();
  if (omp_set_num_threads != nullptr) {
    omp_set_num_threads(std::max(1, all / 4));
  }
}

// Threads with a stream of their own, which stay when their work is done: libtorch keeps some tens of megabytes
// on the GPU for every thread and stream that ever met.
class Hands {
 public:
  // `urgent`: on a stream that goes before others.
  std::future<void> start(c10::Device device, bool urgent, Work work) {
    auto* hand = take({device.index(), urgent});
    if (hand == nullptr) {
      hand = new Hand{.kind = {device.index(), urgent}};
      std::thread([this, device, hand] { serve(device, *hand); }).detach();
    }
    const std::lock_guard lock(hand->mutex);
    hand->work = std::move(work);
    hand->done = {};
    auto future = hand->done.get_future();
    hand->called.notify_one();
    return future;
  }

 private:
  using Kind = std::pair<int, bool>;
  struct Hand {
    Kind kind;
    std::mutex mutex;
    std::condition_variable called;
    Work work;
    std::promise<void> done;
  };

  Hand* take(const Kind& kind) {
    const std::lock_guard lock(mutex_);
    auto& idle = idle_[kind];
    if (idle.empty()) {
      return nullptr;
    }
    auto* hand = idle.back();
    idle.pop_back();
    return hand;
  }

  // Memory goes back to the stream that it came from, for the next work there: so work is done when it is
  // computed, and not only queued.
  void serve(c10::Device device, Hand& hand) {
    std::optional<c10::Stream> stream;
    use_few_cores();
    while (true) {
      std::unique_lock lock(hand.mutex);
      hand.called.wait(lock, [&] { return static_cast<bool>(hand.work); });
      auto work = std::exchange(hand.work, nullptr);
      auto done = std::move(hand.done);
      lock.unlock();
      auto failure = failure_of([&] {
        if (!stream) {
          const c10::impl::VirtualGuardImpl gpu(device.type());
          stream = gpu.getStreamFromGlobalPool(device, hand.kind.second);
        }
        const c10::StreamGuard guard(*stream);
        work();
      });
      const auto later = failure_of([&] {
        if (stream) {
          stream->synchronize();
        }
      });
      failure = failure ? failure : later;
      work = nullptr;  // what it holds goes before anyone hears that it is done
      {
        const std::lock_guard idle(mutex_);
        idle_[hand.kind].push_back(&hand);
      }
      failure ? done.set_exception(failure) : done.set_value();
    }
  }

  std::mutex mutex_;
  std::map<Kind, std::vector<Hand*>> idle_;
};

Hands& hands() {
  static auto& all = *new Hands;  // for ever: its threads wait until the program ends
  return all;
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
  if (!device.is_cpu()) {
    load_linear_algebra(device);
  }
  if (device.is_cpu() || tasks.size() < 2) {
    for (const auto& task : tasks) {
      task();
    }
    return;
  }
  finish_queued(device);
  const auto count = std::min(kThreads, tasks.size());
  std::atomic<size_t> next = count;
  const auto work = [&](size_t own) {
    for (auto i = own; i < tasks.size(); i = next++) {
      tasks[i]();
    }
  };
  std::vector<std::future<void>> threads;
  std::exception_ptr failure;
  for (size_t own = 0; own < count; ++own) {
    const auto refused = failure_of([&] {
      threads.push_back(hands().start(device, /*urgent=*/own == 0, [&, own] { work(own); }));
    });
    if (refused) {  // no more threads are to be had: others may wait for this task
      const auto here = failure_of([&] { work(own); });
      failure = failure ? failure : here;
    }
  }
  for (auto& thread : threads) {
    const auto own = failure_of([&] { thread.get(); });
    failure = failure ? failure : own;
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

struct Aside::Failure {
  std::mutex mutex;
  std::exception_ptr first;
  const Aside* told = nullptr;  // of it

  void note(std::exception_ptr failure, const Aside* who = nullptr) {
    const std::lock_guard lock(mutex);
    first = first ? first : std::move(failure);
    told = who;
  }
  // `who` is told once: what it gives after that is another work.
  void rethrow_to(const Aside& who) {
    const std::lock_guard lock(mutex);
    if (std::exchange(told, nullptr) == &who) {
      first = nullptr;
    }
    told = first ? &who : nullptr;
    if (first) {
      std::rethrow_exception(first);
    }
  }
  void rethrow() {
    const std::lock_guard lock(mutex);
    if (first) {
      std::rethrow_exception(first);
    }
  }
};

Aside::Aside(c10::Device device, size_t waiting)
    : device_(device), waiting_(waiting), failure_(std::make_shared<Failure>()) {}

Aside::Aside(c10::Device device, size_t waiting, const Aside& other)
    : device_(device), waiting_(waiting), failure_(other.failure_) {}

Aside::~Aside() {
  struct Stopped : std::exception {};
  if (!tasks_.empty()) {
    failure_->note(std::make_exception_ptr(Stopped()));
  }
  for (const auto& task : tasks_) {
    task.wait();
  }
}

void Aside::run(std::function<void()> task) {
  wait_for_all_but(waiting_);
  failure_->rethrow_to(*this);
  if (device_.is_cpu()) {
    task();
    return;
  }
  finish_queued(device_);
  const auto before = tasks_.empty() ? std::shared_future<void>() : tasks_.back();
  task = [before, failure = failure_, task = std::move(task)] {
    if (before.valid()) {
      before.wait();
    }
    failure->rethrow();
    if (const auto own = failure_of(task)) {
      failure->note(own);
      std::rethrow_exception(own);
    }
  };
  tasks_.push_back(hands().start(device_, /*urgent=*/false, std::move(task)).share());
}

void Aside::warm_up(std::function<void()> more) {
  if (device_.is_cpu()) {
    return;
  }
  const auto load = [device = device_, more = std::move(more)] {
    load_linear_algebra(device);
    multiplies_float64_fast(device);
    more();
  };
  tasks_.push_back(hands().start(device_, /*urgent=*/true, load).share());
}

void Aside::wait() {
  wait_for_all_but(0);
}

void Aside::wait_for_all_but(size_t count) {
  while (tasks_.size() > count) {
    const auto task = tasks_.front();
    tasks_.pop_front();
    task.wait();
    if (const auto failure = failure_of([&] { task.get(); })) {
      failure_->note(failure, this);
      std::rethrow_exception(failure);
    }
  }
}

}  // namespace theseus
