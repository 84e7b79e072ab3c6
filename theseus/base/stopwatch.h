#pragma once

#include <chrono>
#include <map>
#include <string>

namespace theseus {

// Seconds spent by phase.
using Seconds = std::map<std::string, double>;

// Adds the time from its making to its end to a phase.
class Stopwatch {
 public:
  Stopwatch(Seconds& seconds, std::string phase)
      : seconds_(seconds), phase_(std::move(phase)), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    seconds_[phase_] += spent.count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Seconds& seconds_;
  std::string phase_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace theseus
