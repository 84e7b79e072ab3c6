#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "theseus/report/chapters.h"

// What diagnose found before anything was carried.
namespace theseus::report {
namespace {

std::optional<double> mean(const std::vector<Entry>& spaces, const char* key) {
  double sum = 0;
  int64_t count = 0;
  for (const auto& space : spaces) {
    if (const auto value = space.number(key)) {
      sum += *value;
      ++count;
    }
  }
  return count > 0 ? std::optional<double>(sum / static_cast<double>(count)) : std::nullopt;
}

// Every number of every space, for who wants to sort or copy them.
Table all_numbers(const std::vector<Entry>& spaces) {
  constexpr std::array kKeys = {"before", "after", "centred",   "residual",
                                "rank",   "of",    "condition", "energy"};
  Table table = {.caption = "Spaces", .columns = {{"space", false}}, .fold = "Table of all spaces"};
  for (const char* key : kKeys) {
    table.columns.push_back({key, true});
  }
  for (const auto& space : spaces) {
    std::vector<Cell> row = {{space.text("space", "-")}};
    for (const char* key : kKeys) {
      row.push_back({number_text(space.number(key))});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

Chapter tell_diagnose(const Document& document) {
  const auto entry = document.entry();
  const auto spaces = entry.entries("spaces");
  const auto verdict = entry.text("verdict");
  auto story = fmt::format("Diagnosis: {}.", verdict.empty() ? "no verdict" : verdict);
  const auto before = mean(spaces, "before");
  const auto after = mean(spaces, "after");
  if (before && after) {
    story += fmt::format(
        " The mean cosine of the two models' activations is {} before mapping and {} after.",
        number_text(before), number_text(after));
  }
  if (const auto centred = mean(spaces, "centred")) {
    story += fmt::format(
        " About their means, on which the verdict rests, it is {}.", number_text(centred));
  }
  Section section = {.title = "Diagnosis"};
  for (const auto& [name, value] : entry.flat("distance")) {
    section.parts.emplace_back(Paragraph{fmt::format("{}: {}", name, value)});
  }
  if (auto reasons = entry.texts("reasons"); !reasons.empty()) {
    section.parts.emplace_back(Listing{std::move(reasons)});
  }
  auto maps = space_maps(spaces);
  std::move(maps.begin(), maps.end(), std::back_inserter(section.parts));
  if (constexpr size_t kMostRows = 5000; !spaces.empty() && spaces.size() <= kMostRows) {
    section.parts.emplace_back(all_numbers(spaces));
  }
  return {.story = std::move(story), .section = std::move(section)};
}

}  // namespace theseus::report
