#include <fmt/format.h>

#include "theseus/report/axis.h"
#include "theseus/report/escape.h"
#include "theseus/report/html.h"

// Lines as SVG, told apart by colour and by dashes.
namespace theseus::report {
namespace {

constexpr size_t kLooks = 4;

std::string look(size_t line) {
  return line % kLooks == 0 ? "line" : fmt::format("line of{}", line % kLooks);
}

class Plot {
 public:
  explicit Plot(const Lines& lines)
      : lines_(lines),
        x_{lines.lines.front().spots.front().x, lines.lines.front().spots.front().x},
        y_{lines.lines.front().spots.front().y, lines.lines.front().spots.front().y} {
    for (const auto& line : lines.lines) {
      for (const auto& spot : line.spots) {
        x_.include(spot.x);
        y_.include(spot.y);
      }
    }
    x_ = x_.widened(0.02);
    y_ = y_.widened(0.06);
  }

  std::string svg() const {
    std::string drawn;
    for (size_t i = 0; i < lines_.lines.size(); ++i) {
      drawn += line(i);
    }
    return fmt::format(
        "<svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n",
        kWidth, kHeight, html_text(lines_.caption), axes(), drawn);
  }

 private:
  double x(double value) const {
    return kLeft + (kRight - kLeft) * (value - x_.low) / (x_.high - x_.low);
  }
  double y(double value) const {
    return kBottom - (kBottom - kTop) * (value - y_.low) / (y_.high - y_.low);
  }

  std::string axes() const {
    std::string text;
    for (const double tick : ticks(x_)) {
      text += fmt::format(
          "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.4g}</text>\n", x(tick),
          kBottom + 16, tick);
    }
    for (const double tick : ticks(y_)) {
      text += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.4g}</text>\n",
          kLeft, kRight, y(tick), kLeft - 6, y(tick) + 4, tick);
    }
    return text + fmt::format(
                      "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\"/>"
                      "<text x=\"{3}\" y=\"{4}\" text-anchor=\"middle\">{5}</text>\n",
                      kLeft, kRight, kBottom, (kLeft + kRight) / 2, kHeight - 6,
                      html_text(lines_.across));
  }

  std::string line(size_t i) const {
    std::string places;
    for (const auto& spot : lines_.lines[i].spots) {
      places += fmt::format("{:.1f},{:.1f} ", x(spot.x), y(spot.y));
    }
    return fmt::format(
        "<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n", look(i), places,
        html_text(lines_.lines[i].name));
  }

  const Lines& lines_;
  Range x_, y_;
};

}  // namespace

std::string html_lines(const Lines& lines) {
  std::string keys;
  for (size_t i = 0; i < lines.lines.size(); ++i) {
    keys += fmt::format(
        "<li><svg viewBox=\"0 0 24 14\" aria-hidden=\"true\"><path class=\"{}\" d=\"M0 7H24\"/>"
        "</svg>{}</li>\n",
        look(i), html_text(lines.lines[i].name));
  }
  return fmt::format(
      "<figure>\n<figcaption>{}</figcaption>\n{}<ul class=\"keys\">\n{}</ul>\n{}</figure>\n",
      html_text(lines.caption), Plot(lines).svg(), keys, html_table(as_table(lines)));
}

}  // namespace theseus::report
