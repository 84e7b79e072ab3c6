#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "theseus/model/parameter.h"
#include "theseus/report/chapters.h"

namespace theseus::report {
namespace {

constexpr size_t kMostFields = 40000;
constexpr int64_t kNoBlock = std::numeric_limits<int64_t>::max();  // the last column
using Values = std::vector<std::pair<std::string, double>>;

// The number that role_of replaces by a star.
int64_t block_of(const std::string& name, const std::string& role) {
  const auto star = static_cast<size_t>(
      std::mismatch(name.begin(), name.end(), role.begin(), role.end()).first - name.begin());
  const auto digits = name.substr(star, name.find('.', star) - star);
  constexpr size_t kLongest = 9;
  return star == name.size() || digits.empty() || digits.size() > kLongest ? kNoBlock
                                                                           : std::stoll(digits);
}

struct Measure {
  const char* key;
  const char* caption;
  const char* meaning;
  Scale scale;
};

constexpr double kNoDigitsLeft = 1e16;  // of a float64

const std::array<Measure, 5> kMeasures = {{
    {"energy", "Share of the energy held", "less of it", {.faint = 1, .strong = 0}},
    {"condition",
     "Condition of the statistics",
     "worse; at 1e16 no digit is left",
     {.faint = 1, .strong = kNoDigitsLeft, .log = true}},
    {"residual",
     "Residual: what the map leaves of the target's activations, by its norm",
     "larger; 1 is as much as there is",
     {.faint = 0, .strong = 1}},
    {"asymmetry",
     "Asymmetry: how far a map is from the best one",
     "farther",
     {.faint = 1e-16, .strong = 1e-4, .log = true}},
    {"orthogonality",
     "Orthogonality error",
     "larger",
     {.faint = 1e-8, .strong = 1e-2, .log = true}},
}};

// The directions that can be known: those of the narrower model.
std::optional<double> directions(const Entry& space) {
  if (const auto of = space.number("of")) {
    return of;
  }
  const auto source = space.number("source_width");
  const auto target = space.number("target_width");
  return source && target ? std::optional<double>(std::min(*source, *target)) : std::nullopt;
}

Values values_of(const std::vector<Entry>& spaces, const char* key) {
  Values values;
  for (const auto& space : spaces) {
    if (const auto value = space.number(key)) {
      values.emplace_back(space.text("space"), *value);
    }
  }
  return values;
}

// Cosines may be negative; all maps of them have one scale.
double lowest_of(const std::vector<Entry>& spaces, const char* key) {
  double lowest = 0;
  for (const auto& [space, value] : values_of(spaces, key)) {
    lowest = std::min(lowest, value);
  }
  return lowest;
}

// A map that says the same everywhere is a sentence.
void add_map(const Values& values, HeatMap map, std::vector<Part>& parts) {
  if (values.empty()) {
    return;
  }
  const bool same = std::all_of(values.begin(), values.end(), [&](const auto& value) {
    return value.second == values.front().second;
  });
  if (same && values.size() > 1) {
    parts.emplace_back(Paragraph{fmt::format(
        "{}: {} in each of {} spaces.", map.caption, number_text(values.front().second),
        values.size())});
    return;
  }
  const auto caption = map.caption;
  if (auto drawn = by_block(values, std::move(map))) {
    parts.emplace_back(std::move(*drawn));
  } else {
    parts.emplace_back(
        Paragraph{fmt::format("{}: {} values, too many to draw.", caption, values.size())});
  }
}

void add_ranks(const std::vector<Entry>& spaces, std::vector<Part>& parts) {
  Values shares, completed;
  double most = 1;
  for (const auto& space : spaces) {
    const auto rank = space.number("rank");
    const auto of = directions(space);
    if (rank && of && *of > 0) {
      shares.emplace_back(space.text("space"), *rank / *of);
    }
    if (const auto filled = space.number("completed")) {
      completed.emplace_back(space.text("space"), *filled);
      most = std::max(most, *filled);
    }
  }
  add_map(
      shares,
      {.caption = "Rank share: directions that the statistics determine",
       .meaning = "fewer",
       .scale = {.faint = 1, .strong = 0}},
      parts);
  add_map(
      completed,
      {.caption = "Completed: directions filled in without statistics",
       .meaning = "more",
       .scale = {.faint = 0, .strong = most}},
      parts);
}

}  // namespace

std::optional<HeatMap> by_block(const Values& values, HeatMap map) {
  map.corner = map.corner.empty() ? "space" : map.corner;
  map.across = "block";
  std::map<std::string, size_t> rows;
  std::map<int64_t, size_t> columns;
  for (const auto& [name, value] : values) {
    const auto role = model::role_of(name);
    if (rows.try_emplace(role, rows.size()).second) {
      map.rows.push_back(role);
    }
    columns[block_of(name, role)] = 0;
  }
  if (values.empty() || rows.size() * columns.size() > kMostFields) {
    return std::nullopt;
  }
  for (auto& [block, place] : columns) {
    place = map.columns.size();
    map.columns.push_back(block == kNoBlock ? "-" : std::to_string(block));
  }
  map.remark = columns.contains(kNoBlock) && columns.size() > 1 ? "-: in no block" : "";
  map.values.assign(rows.size(), std::vector<std::optional<double>>(columns.size()));
  for (const auto& [name, value] : values) {
    const auto role = model::role_of(name);
    auto& field = map.values[rows.at(role)][columns.at(block_of(name, role))];
    if (!field || map.scale.strength(value) > map.scale.strength(*field)) {
      field = value;
    }
  }
  return map;
}

std::vector<Part> space_maps(const std::vector<Entry>& spaces) {
  std::vector<Part> parts;
  const std::pair<const char*, const char*> cosines[] = {
      {"before", "Cosine before mapping"},
      {"after", "Cosine after mapping"},
      {"centred", "Cosine after mapping, about the means"}};
  double lowest = 0;
  for (const auto& [key, caption] : cosines) {
    lowest = std::min(lowest, lowest_of(spaces, key));
  }
  for (const auto& [key, caption] : cosines) {
    add_map(
        values_of(spaces, key),
        {.caption = caption, .meaning = "less alike", .scale = {.faint = 1, .strong = lowest}},
        parts);
  }
  add_ranks(spaces, parts);
  for (const auto& measure : kMeasures) {
    add_map(
        values_of(spaces, measure.key),
        {.caption = measure.caption, .meaning = measure.meaning, .scale = measure.scale}, parts);
  }
  return parts;
}

}  // namespace theseus::report
