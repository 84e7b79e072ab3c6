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

class LinesPlot {
 public:
  explicit LinesPlot(const Lines& lines)
      : lines_(lines),
        frame_{
            {lines.lines.front().spots.front().x, lines.lines.front().spots.front().x},
            {lines.lines.front().spots.front().y, lines.lines.front().spots.front().y}} {
    for (const auto& line : lines.lines) {
      for (const auto& spot : line.spots) {
        frame_.across.include(spot.x);
        frame_.up.include(spot.y);
      }
    }
    frame_ = {frame_.across.widened(0.02), frame_.up.widened(0.06)};
  }

  std::string svg() const {
    std::string drawn;
    for (size_t i = 0; i < lines_.lines.size(); ++i) {
      drawn += line(i);
    }
    return fmt::format(
        "<svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}</svg>\n",
        kWidth, kHeight, html_text(lines_.caption), frame_.axes(lines_.across), drawn);
  }

 private:
  std::string line(size_t i) const {
    std::string places;
    for (const auto& spot : lines_.lines[i].spots) {
      places += fmt::format("{:.1f},{:.1f} ", frame_.x(spot.x), frame_.y(spot.y));
    }
    return fmt::format(
        "<polyline class=\"{}\" points=\"{}\"><title>{}</title></polyline>\n", look(i), places,
        html_text(lines_.lines[i].name));
  }

  const Lines& lines_;
  Frame frame_;
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
      html_text(lines.caption), LinesPlot(lines).svg(), keys, html_table(as_table(lines)));
}

}  // namespace theseus::report
