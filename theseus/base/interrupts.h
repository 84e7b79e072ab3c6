#pragma once

namespace theseus {

// While one of these lives a signal to end the process waits; it is raised again when the last one has gone.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

// For a handler: whether the signal has to wait. Async-signal-safe, as the next two are.
bool must_wait(int signal) noexcept;

// How many outputs this process has put in their place, whole: behind the last one of a job there is
// nothing left to interrupt.
void count_output() noexcept;
int outputs_there() noexcept;

}  // namespace theseus
