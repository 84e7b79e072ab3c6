#include "theseus/report/axis.h"

namespace theseus::report {

// Multiples of 1, 2 or 5 times a power of ten. Counted, not summed: between large numbers that are
// close together a step may be too small to move.
std::vector<double> ticks(const Range& range) {
  constexpr int kMost = 10;
  const double rough = (range.high - range.low) / 5;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  std::vector<double> result;
  for (int i = 0; i < kMost; ++i) {
    const double tick = (std::ceil(range.low / step) + i) * step;
    if (tick <= range.high) {
      result.push_back(std::abs(tick) < step / 2 ? 0 : tick);
    }
  }
  return result;
}

}  // namespace theseus::report
