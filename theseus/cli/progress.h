#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace theseus::cli {

// "running: 12 of 48 blocks, 3 s left" on a terminal's standard error, once work has lasted a second;
// nothing when standard error is not a terminal that can clear a line.
class Progress {
 public:
  explicit Progress(std::string unit);
  ~Progress() { finish(); }

  void show(int64_t done, int64_t all);
  void finish();  // clears the line

 private:
  std::string unit_;
  bool terminal_;
  bool shown_ = false;
  double last_ = 0;  // seconds after start_
  std::chrono::steady_clock::time_point start_;
};

// A long job's progress on standard error: a bar with rate and time left on a terminal, otherwise a
// line now and then. Nothing when `quiet`.
class JobProgress {
 public:
  explicit JobProgress(bool quiet);
  ~JobProgress() { finish(); }

  void operator()(double done, double all, const std::string& doing);
  void finish();  // clears the line

 private:
  // Of the whole job, from what is done of a phase: never less than before.
  double share_of(const std::string& phase, double done, double all);

  bool quiet_;
  bool terminal_;
  bool shown_ = false;
  std::string scale_;  // of phases that count alike
  double scale_begin_ = 0, share_ = 0;
  std::string phase_;  // what is being done, up to a ':': each has a clock of its own
  double began_at_ = 0;
  double last_ = 0;
  std::chrono::steady_clock::time_point start_, phase_start_;
};

}  // namespace theseus::cli
