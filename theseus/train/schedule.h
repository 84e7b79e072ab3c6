#pragma once

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

}  // namespace theseus::train
