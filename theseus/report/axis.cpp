#include "theseus/report/axis.h"

#include <fmt/format.h>

#include "theseus/report/escape.h"

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

std::string Frame::axes(const std::string& words) const {
  std::string text;
  for (const double tick : ticks(across)) {
    text += fmt::format(
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>\n", x(tick), kBottom + 16,
        tick);
  }
  for (const double tick : ticks(up)) {
    text += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
        kLeft, kRight, y(tick), kLeft - 6, y(tick) + 4, tick);
  }
  return text + fmt::format(
                    "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                    "<text x=\"{3}\" y=\"{4}\" text-anchor=\"middle\">{5}</text>\n",
                    kLeft, kRight, kBottom, (kLeft + kRight) / 2, kHeight - 6, html_text(words));
}

}  // namespace theseus::report
