#include <algorithm>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/units.h"
#include "theseus/report/chapters.h"

// What evaluate and sweep measured.
namespace theseus::report {
namespace {

// Throws InputError without a value.
Point point_of(const Entry& entry) {
  const auto value = entry.number("value");
  require(value.has_value(), entry.where(), ": value is missing: this file is cut or damaged");
  return {
      .alpha = entry.number("alpha", 0),
      .value = *value,
      .low = entry.number("low"),
      .high = entry.number("high")};
}

std::string count_of(const Entry& entry) {
  const auto count = entry.number("count");
  return count ? fmt::format("{:.0f}", *count) : "-";
}

std::string data_words(const Entry& entry) {
  const auto data = entry.text("data");
  const auto split = entry.text("split");
  return (data.empty() ? "the data" : short_name(data)) +
         (split.empty() ? "" : fmt::format(" ({})", split));
}

std::vector<Point> points_of(const Entry& entry) {
  constexpr size_t kMost = 2000;
  std::vector<Point> points;
  for (const auto& one : entry.entries("curve")) {
    require(one.number("alpha").has_value(), one.where(), ": alpha is missing");
    points.push_back(point_of(one));
  }
  require(!points.empty(), entry.where(), ": curve is empty: the sweep has measured nothing");
  require(
      points.size() <= kMost, entry.where(), ": curve has ", points.size(),
      " points; a report shows at most ", kMost);
  std::stable_sort(points.begin(), points.end(), [](const Point& left, const Point& right) {
    return left.alpha < right.alpha;
  });
  return points;
}

// Its interval is that of the curve where the sweep does not repeat it.
std::optional<Point> best_of(const Entry& entry, const std::vector<Point>& points) {
  const auto best = entry.entry("best");
  if (!best) {
    return std::nullopt;
  }
  auto result = point_of(*best);
  for (const auto& point : points) {
    if (point.alpha == result.alpha && !result.low) {
      result.low = point.low;
      result.high = point.high;
    }
  }
  return result;
}

std::string sweep_story(const Entry& entry, const Curve& curve) {
  auto words = fmt::format(
      "{} values of alpha from {} to {} were tried{}.", curve.points.size(),
      number_text(curve.points.front().alpha), number_text(curve.points.back().alpha),
      entry.text("data").empty() ? "" : " on " + data_words(entry));
  if (curve.best) {
    words += fmt::format(
        " The best is alpha = {}, with {} {}", number_text(curve.best->alpha), curve.metric,
        interval_text(*curve.best));
    words += curve.base ? fmt::format("; the target alone has {}.", number_text(curve.base)) : ".";
    words +=
        curve.best->alpha == 0 && curve.points.back().alpha > 0 ? " The update did not help." : "";
  }
  return words;
}

}  // namespace

Chapter tell_evaluate(const Document& document) {
  const auto entry = document.entry();
  const auto point = point_of(entry);
  const auto count = entry.number("count");
  const auto model = entry.text("model");
  const auto task = entry.text("task");
  return {
      .story = fmt::format(
          "{} was measured on {}{}{}: {} {}{}.", model.empty() ? "A model" : short_name(model),
          data_words(entry), task.empty() ? "" : " by " + task,
          count ? fmt::format(", {:.0f} examples", *count) : "", entry.text("metric", "value"),
          number_text(point.value),
          point.low && point.high
              ? fmt::format(
                    " (95 % interval {} to {})", number_text(point.low), number_text(point.high))
              : ""),
      .section = std::nullopt};
}

Table measurements(const std::vector<Document>& documents) {
  Table table = {
      .caption = "What was measured, with 95 % intervals where there are any",
      .columns = {
          {"model", false},
          {"data", false},
          {"task", false},
          {"metric", false},
          {"value", true},
          {"low", true},
          {"high", true},
          {"examples", true}}};
  for (const auto& document : documents) {
    if (document.kind != Kind::kEvaluate) {
      continue;
    }
    const auto entry = document.entry();
    const auto point = point_of(entry);
    table.rows.push_back(
        {{short_name(entry.text("model", "-"))},
         {data_words(entry)},
         {entry.text("task", "-")},
         {entry.text("metric", "-")},
         {number_text(point.value)},
         {number_text(point.low)},
         {number_text(point.high)},
         {count_of(entry)}});
  }
  return table;
}

Chapter tell_sweep(const Document& document) {
  const auto entry = document.entry();
  Curve curve = {.metric = entry.text("metric", "value"), .points = points_of(entry)};
  curve.caption = fmt::format("{} over alpha, the update's factor", curve.metric);
  curve.best = best_of(entry, curve.points);
  if (const auto base = entry.entry("base")) {
    curve.base = base->number("value");
  }
  auto story = sweep_story(entry, curve);
  const auto model = entry.text("model");
  return {
      .story = std::move(story),
      .section = Section{
          .title = "Alpha" + (model.empty() ? "" : ": " + short_name(model)),
          .parts = {std::move(curve)}}};
}

}  // namespace theseus::report
