#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "theseus/report/axis.h"
#include "theseus/report/escape.h"
#include "theseus/report/html.h"

// The curve as SVG, in units that are about pixels on a phone.
namespace theseus::report {
namespace {

class CurvePlot {
 public:
  explicit CurvePlot(const Curve& curve)
      : curve_(curve),
        frame_{
            {curve.points.front().alpha, curve.points.back().alpha},
            {curve.points.front().value, curve.points.front().value}} {
    auto& [across, up] = frame_;
    for (const auto& point : curve.points) {
      up.include(point.value);
      up.include(point.low);
      up.include(point.high);
    }
    up.include(curve.base);
    if (curve.best) {
      across.include(curve.best->alpha);
      up.include(curve.best->value);
    }
    frame_ = {across.widened(0.02), up.widened(0.06)};
  }

  std::string svg() const {
    const auto label = fmt::format(
        "{}: {} values of alpha from {} to {}", curve_.caption, curve_.points.size(),
        number_text(curve_.points.front().alpha), number_text(curve_.points.back().alpha));
    return fmt::format(
        "<svg class=\"curve\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}{}{}{}{}"
        "</svg>\n",
        kWidth, kHeight, html_text(label), frame_.axes("alpha"), intervals(), marks(), line(),
        dots());
  }

 private:
  double x(double alpha) const { return frame_.x(alpha); }
  double y(double value) const { return frame_.y(value); }

  // A band when every point has an interval, otherwise a bar for each that has.
  std::string intervals() const {
    std::string there, back, bars;
    bool all = curve_.points.size() > 1;
    for (const auto& point : curve_.points) {
      if (!point.low || !point.high) {
        all = false;
        continue;
      }
      there += fmt::format("{:.1f},{:.1f} ", x(point.alpha), y(*point.high));
      back = fmt::format("{:.1f},{:.1f} ", x(point.alpha), y(*point.low)) + back;
      bars += fmt::format(
          "<line class=\"bar\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/>\n",
          x(point.alpha), y(*point.low), y(*point.high));
    }
    return all ? fmt::format("<polygon class=\"band\" points=\"{}{}\"/>\n", there, back) : bars;
  }

  std::string marks() const {
    std::string text;
    if (curve_.base) {
      text += fmt::format(
          "<line class=\"base\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>\n", kLeft,
          kRight, y(*curve_.base));
    }
    return text;
  }

  std::string line() const {
    std::string places;
    for (const auto& point : curve_.points) {
      places += fmt::format("{:.1f},{:.1f} ", x(point.alpha), y(point.value));
    }
    return fmt::format("<polyline class=\"line\" points=\"{}\"/>\n", places);
  }

  std::string dots() const {
    std::string text;
    for (const auto& point : curve_.points) {
      text += fmt::format(
          "<circle class=\"dot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\"><title>alpha {}: {}</title>"
          "</circle>\n",
          x(point.alpha), y(point.value), number_text(point.alpha), interval_text(point));
    }
    if (curve_.best) {
      text += fmt::format(
          "<circle class=\"top\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"7\"><title>best: alpha {}: {}"
          "</title></circle>\n",
          x(curve_.best->alpha), y(curve_.best->value), number_text(curve_.best->alpha),
          interval_text(*curve_.best));
    }
    return text;
  }

  const Curve& curve_;
  Frame frame_;
};

std::string key(const char* shape, const std::string& words) {
  return fmt::format(
      "<li><svg viewBox=\"0 0 24 14\" aria-hidden=\"true\">{}</svg>{}</li>\n", shape, words);
}

std::string keys_of(const Curve& curve) {
  const bool intervals = std::any_of(
      curve.points.begin(), curve.points.end(),
      [](const Point& point) { return point.low && point.high; });
  auto text = key("<path class=\"line\" d=\"M0 7H24\"/>", html_text(curve.metric));
  if (intervals) {
    text += key("<path class=\"band\" d=\"M0 1H24V13H0Z\"/>", "interval");
  }
  if (curve.best) {
    text +=
        key("<circle class=\"top\" cx=\"12\" cy=\"7\" r=\"5\"/>",
            fmt::format(
                "best: alpha {}, {}", number_text(curve.best->alpha), interval_text(*curve.best)));
  }
  if (curve.base) {
    text += key(
        "<path class=\"base\" d=\"M0 7H24\"/>", "without the update: " + number_text(curve.base));
  }
  return "<ul class=\"keys\">\n" + text + "</ul>\n";
}

}  // namespace

std::string html_curve(const Curve& curve) {
  return fmt::format(
      "<figure>\n<figcaption>{}</figcaption>\n{}{}{}</figure>\n", html_text(curve.caption),
      CurvePlot(curve).svg(), keys_of(curve), html_table(as_table(curve)));
}

}  // namespace theseus::report
