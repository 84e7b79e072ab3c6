#pragma once

#include <functional>
#include <future>
#include <vector>

#include <c10/core/Device.h>

namespace theseus {

// A piece of work for a GPU often leaves most of it idle, or keeps the host busy. There several run side by
// side, each in a thread and on a stream of its own. One piece keeps all cores of a CPU busy: there they
// run one after the other.

// Waits until what the calling thread has queued there is computed; on a CPU it is.
void finish_queued(c10::Device device);

// Runs all of them; one may wait for another before it, and the first goes before others on the GPU. Throws
// what one of them threw, when all have ended.
void run_side_by_side(c10::Device device, const std::vector<std::function<void()>>& tasks);

// Runs one task at a time beside its maker. What it reads must be computed, not queued.
class Aside {
 public:
  explicit Aside(c10::Device device) : device_(device) {}
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Waits for the task before and throws what it threw.
  void run(std::function<void()> task);
  void wait();
  // Run first: loads what linear algebra on a GPU needs, which takes some tenths of a second, then does `more` there.
  void warm_up(std::function<void()> more);

 private:
  c10::Device device_;
  std::future<void> running_;
};

}  // namespace theseus
