#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace theseus::train {

// How large steps are: rising to `peak` over the first `warmup` steps, then falling as half a cosine
// towards 0, which the step after the last one would have.
struct Schedule {
  double peak = 1e-5;
  int64_t steps = 2000;
  int64_t warmup = 200;

  // Of step 0, 1, ... steps - 1.
  double rate(int64_t step) const {
    if (step < warmup) {
      return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
    }
    const auto share = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
    return peak * (1 + std::cos(std::numbers::pi * share)) / 2;
  }
};

// Measuring on examples held out is to take at most about a quarter of the time of learning. A step goes forward and
// back, which takes about three times as long as going forward, so it pays for this many examples:
inline double measured_for(int64_t steps, int64_t batch_size) {
  return 0.25 * 3 * static_cast<double>(steps) * static_cast<double>(batch_size);
}

// How many examples are measured on where nobody said: so few that five measurements are paid for, but enough to tell
// something.
inline int64_t most_held_out(int64_t steps, int64_t batch_size) {
  constexpr double kLeast = 100, kMost = 1e12;
  return static_cast<int64_t>(std::clamp(measured_for(steps, batch_size) / 4, kLeast, kMost));
}

// Steps between two measurements on `held_out` examples where nobody said: a twentieth of all, or as many as pay for one.
// The start and the last step are always measured.
inline int64_t validate_every(int64_t steps, int64_t batch_size, int64_t held_out) {
  const auto paid = std::ceil(static_cast<double>(held_out) / measured_for(1, batch_size));
  return std::max<int64_t>({1, steps / 20, static_cast<int64_t>(paid)});
}

}  // namespace theseus::train
