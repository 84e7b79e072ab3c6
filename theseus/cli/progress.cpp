#include "theseus/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "theseus/base/units.h"

namespace theseus::cli {

namespace {

// Returns whether standard error is a terminal that can clear a line.
bool clears_lines() {
  const auto* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && kind != nullptr && *kind != '\0' &&
         std::string_view(kind) != "dumb";
}

// Where phases that come one after the other end, as parts of the whole. Between them there may be others.
double end_of(const std::string& phase) {
  constexpr std::pair<std::string_view, double> kEnds[] = {
      {"reading", 0.05},   {"comparing blocks", 0.15},
      {"gradients", 0.25}, {"the target's gradients", 0.28},
      {"walking to", 0.3}, {"fitting the head", 0.3},
      {"learning", 0.5},   {"aligning", 0.95},
      {"carrying", 0.95},  {"training", 0.98}};
  for (const auto& [word, end] : kEnds) {
    if (phase.starts_with(word)) {
      return end;
    }
  }
  return 1;
}

// What the numbers of a phase count.
std::string unit_of(const std::string& phase) {
  constexpr std::pair<std::string_view, const char*> kUnits[] = {
      {"writing", "bytes"}, {"reading", "examples"}, {"updates", "updates"}};
  for (const auto& [word, unit] : kUnits) {
    if (phase.starts_with(word)) {
      return unit;
    }
  }
  return "steps";
}

}  // namespace

Progress::Progress(std::string unit)
    : unit_(std::move(unit)), terminal_(clears_lines()), start_(std::chrono::steady_clock::now()) {}

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
      terminal_(clears_lines()),
      start_(std::chrono::steady_clock::now()),
      phase_start_(start_) {}

void JobProgress::operator()(double done, double all, const std::string& doing) {
  const auto now = std::chrono::steady_clock::now();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  // Walking and solving alternate, so they share a clock.
  const std::string phase =
      doing.starts_with("walking stage") || doing.starts_with("solving") || doing == "aligned"
          ? "aligning"
          : doing.substr(0, doing.find(':'));
  const double share = share_of(phase, done, all);
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
  const auto left =
      rate > 0
          ? fmt::format(", {}, {:.0f} s left", rate_text(rate, unit_of(phase)), (all - done) / rate)
          : std::string();
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

double JobProgress::share_of(const std::string& phase, double done, double all) {
  const double end = end_of(phase);
  const auto scale =
      end < 1 || phase == "writing" ? phase.substr(0, phase.find(' ')) : std::string();
  if (scale != scale_) {
    scale_ = scale;
    scale_begin_ = share_;
  }
  const double within = all > 0 ? std::clamp(done / all, 0.0, 1.0) : 0;
  share_ = std::max(share_, scale_begin_ + (std::max(end, scale_begin_) - scale_begin_) * within);
  return share_;
}

void JobProgress::finish() {
  if (shown_) {
    fmt::print(stderr, "\r\033[K");
    shown_ = false;
  }
}

}  // namespace theseus::cli
