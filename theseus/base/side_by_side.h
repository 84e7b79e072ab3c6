#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <future>
#include <memory>
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
  // `waiting`: so many tasks may be given before the one that runs has ended.
  explicit Aside(c10::Device device, size_t waiting = 0);
  // Its tasks and those of `other` are one work: when one fails, none of the others is begun.
  Aside(c10::Device device, size_t waiting, const Aside& other);
  // Ends early: what has not begun is not run.
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  // Waits until there is room for the task. If an earlier task of the same work threw, this throws the same and does
  // not run the task.
  void run(std::function<void()> task);
  // For all of them. Throws what one threw.
  void wait();
  // Run first: loads what linear algebra on a GPU needs, which takes some tenths of a second, then does `more` there.
  void warm_up(std::function<void()> more);

 private:
  void wait_for_all_but(size_t count);

  struct Failure;  // the first of the work

  c10::Device device_;
  size_t waiting_;
  std::shared_ptr<Failure> failure_;
  std::deque<std::shared_future<void>> tasks_;
};

}  // namespace theseus
