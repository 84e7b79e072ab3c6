#include "theseus/report/page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace theseus::report {

std::string number_text(std::optional<double> value) {
  return value ? fmt::format("{:.4g}", *value) : "-";
}

std::string interval_text(const Point& point) {
  const auto value = number_text(point.value);
  return point.low && point.high
             ? fmt::format("{} ({:.4g} to {:.4g})", value, *point.low, *point.high)
             : value;
}

std::string percent_text(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

Table as_table(const Curve& curve) {
  Table table = {
      .caption = curve.caption,
      .columns =
          {{"alpha", true}, {curve.metric, true}, {"low", true}, {"high", true}, {"", false}},
      .fold = "Table"};
  for (const auto& point : curve.points) {
    const bool best = curve.best && curve.best->alpha == point.alpha;
    table.rows.push_back(
        {{number_text(point.alpha)},
         {.text = number_text(point.value), .best = best},
         {number_text(point.low)},
         {number_text(point.high)},
         {best ? "best" : ""}});
  }
  return table;
}

Table as_table(const Lines& lines) {
  Table table = {.caption = lines.caption, .columns = {{lines.across, true}}, .fold = "Table"};
  std::map<double, std::vector<std::optional<double>>> rows;  // by x
  for (size_t i = 0; i < lines.lines.size(); ++i) {
    table.columns.push_back({lines.lines[i].name, true});
    for (const auto& spot : lines.lines[i].spots) {
      auto& row = rows[spot.x];
      row.resize(lines.lines.size());
      row[i] = spot.y;
    }
  }
  for (const auto& [x, values] : rows) {
    std::vector<Cell> row = {{number_text(x)}};
    for (const auto& value : values) {
      row.push_back({number_text(value)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace theseus::report
