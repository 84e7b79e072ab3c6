#include "theseus/cli/progress.h"

#include <cstdio>
#include <unistd.h>

#include <fmt/format.h>

namespace theseus::cli {

Progress::Progress(std::string unit)
    : unit_(std::move(unit)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()) {}

void Progress::show(int64_t done, int64_t all) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  if (!terminal_ || elapsed.count() < 1 || done == 0 || elapsed.count() - last_ < 0.1) {
    return;
  }
  last_ = elapsed.count();
  const double left = elapsed.count() / static_cast<double>(done) * static_cast<double>(all - done);
  fmt::print(stderr, "\r\033[Krunning: {} of {} {}, {:.0f} s left", done, all, unit_, left);
  shown_ = true;
}

void Progress::finish() {
  if (shown_) {
    fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }
}

JobProgress::JobProgress(bool quiet)
    : quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      phase_start_(start_) {}

void JobProgress::operator()(double done, double all, const std::string& doing) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // Walking and solving alternate, so they share a clock.
  const std::string phase = doing.starts_with("walking") || doing.starts_with("solving")
                                ? "aligning"
                                : doing.substr(0, doing.find(':'));
  if (phase != phase_) {
    phase_ = phase;
    phase_start_ = now;
    began_at_ = done;
  }
  const double every = terminal_ ? 0.1 : last_ > 0 ? 10 : 1;
  if (quiet_ || elapsed < 1 || elapsed - last_ < every || all <= 0) {
    return;
  }
  last_ = elapsed;
  const double spent = std::chrono::duration<double>(now - phase_start_).count();
  const double rate = spent > 0 ? (done - began_at_) / spent : 0;
  const auto left = rate > 0
                        ? fmt::format(", {:.3g} steps/s, {:.0f} s left", rate, (all - done) / rate)
                        : std::string();
  const double share = done / all;
  if (!terminal_) {
    fmt::print(stderr, "{:3.0f} % {}{}\n", 100 * share, doing, left);
    return;
  }
  constexpr int kCells = 24;
  const int full = static_cast<int>(share * kCells);
  fmt::print(
      stderr, "\r\033[K[{}{}] {:3.0f} % {}{}", std::string(static_cast<size_t>(full), '#'),
      std::string(static_cast<size_t>(kCells - full), '-'), 100 * share, doing, left);
  std::fflush(stderr);
  shown_ = true;
}

void JobProgress::finish() {
  if (shown_) {
    fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }
}

}  // namespace theseus::cli
