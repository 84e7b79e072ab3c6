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

}  // namespace theseus::cli
