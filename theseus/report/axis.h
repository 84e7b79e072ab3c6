#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

// What pictures of curves share.
namespace theseus::report {

// Of a picture, in units that are about pixels on a phone.
constexpr double kWidth = 460, kHeight = 280;
constexpr double kLeft = 54, kRight = 448, kTop = 12, kBottom = 238;

struct Range {
  double low, high;

  void include(std::optional<double> value) {
    low = std::min(low, value.value_or(low));
    high = std::max(high, value.value_or(high));
  }
  // A little room at both ends; a range of one value gets some, too.
  Range widened(double share) const {
    const double room = high > low ? share * (high - low) : std::max(std::abs(low), 1.0) * 0.1;
    return {low - room, high + room};
  }
};

// Round numbers within the range, at most ten.
std::vector<double> ticks(const Range& range);

// Where values lie in a picture.
struct Frame {
  Range across, up;  // of the values shown

  double x(double value) const {
    return kLeft + (kRight - kLeft) * (value - across.low) / (across.high - across.low);
  }
  double y(double value) const {
    return kBottom - (kBottom - kTop) * (value - up.low) / (up.high - up.low);
  }
  // Ticks, grid and the line below, as SVG; `words` under it.
  std::string axes(const std::string& words) const;
};

}  // namespace theseus::report
