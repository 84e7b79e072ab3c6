#include "theseus/cli/diagnose_text.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/model/parameter.h"

namespace theseus::cli {
namespace {

using nlohmann::ordered_json;

// A number over all blocks: the mean of it, or the least.
struct Over {
  double sum = 0, least = 0;
  int64_t count = 0;

  void add(const ordered_json& row, const char* key) {
    if (const auto found = row.find(key); found != row.end()) {
      const auto value = found->get<double>();
      least = count == 0 ? value : std::min(least, value);
      sum += value;
      ++count;
    }
  }
  std::string mean() const {
    return count == 0 ? "-" : fmt::format("{:.3f}", sum / static_cast<double>(count));
  }
  std::string lowest() const { return count == 0 ? "-" : fmt::format("{:.3f}", least); }
};

struct RoleRow {
  std::string role;
  int64_t rank = 0, of = 0;  // of the block with the least rank
  Over before, after, centred, energy;
};

std::vector<RoleRow> rows_of(const ordered_json& spaces) {
  std::vector<RoleRow> rows;
  for (const auto& space : spaces) {
    const auto role = model::role_of(space.at("space").get<std::string>());
    auto row = std::find_if(
        rows.begin(), rows.end(), [&](const auto& known) { return known.role == role; });
    if (row == rows.end()) {
      row = rows.insert(rows.end(), {.role = role, .rank = space.at("rank"), .of = space.at("of")});
    }
    if (space.at("rank").get<int64_t>() < row->rank) {
      row->rank = space.at("rank");
      row->of = space.at("of");
    }
    row->before.add(space, "before");
    row->after.add(space, "after");
    row->centred.add(space, "centred");
    row->energy.add(space, "energy");
  }
  return rows;
}

std::string spaces_text(const ordered_json& spaces) {
  const auto rows = rows_of(spaces);
  size_t width = 5;
  for (const auto& row : rows) {
    width = std::max(width, row.role.size());
  }
  auto text = fmt::format(
      "{:<{}}  {:>7} {:>7} {:>8} {:>7} {:>11} {:>7}\n", "space", width, "before", "after",
      "centred", "least", "rank", "energy");
  for (const auto& row : rows) {
    text += fmt::format(
        "{:<{}}  {:>7} {:>7} {:>8} {:>7} {:>11} {:>7}\n", row.role, width, row.before.mean(),
        row.after.mean(), row.centred.mean(), row.centred.lowest(),
        fmt::format("{}/{}", row.rank, row.of), row.energy.lowest());
  }
  return text +
         "cosines of held-out rows: means over blocks, and the least one centred; the least rank\n"
         "and the least share of the update in directions that the statistics determine\n\n";
}

std::string distance_text(const ordered_json& distance) {
  const auto compared = distance.at("compared").get<int64_t>();
  if (compared == 0) {
    return "bases        have no tensor of one shape\n";
  }
  return fmt::format(
      "bases        |A - B| / |A| = {:.3g} over {} of {} tensors, {:.3g} % of their bytes equal\n",
      distance.at("relative").get<double>(), compared, distance.at("of").get<int64_t>(),
      100 * distance.at("equal_bytes").get<double>());
}

}  // namespace

std::string diagnose_text(const ordered_json& record) {
  auto text = spaces_text(record.at("spaces"));
  text += fmt::format(
      "sequences    {} to align on, {} held out\n", record.at("aligned").get<int64_t>(),
      record.at("held_out").get<int64_t>());
  text += distance_text(record.at("distance"));
  for (const auto& note : record.at("notes")) {
    text += fmt::format("note: {}\n", note.get<std::string>());
  }
  text += fmt::format("verdict      {}\n", record.at("verdict").get<std::string>());
  for (const auto& reason : record.at("reasons")) {
    text += fmt::format("             {}\n", reason.get<std::string>());
  }
  return text;
}

}  // namespace theseus::cli
