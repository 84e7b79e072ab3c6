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

// The directions that can be known: those of the narrower model.
std::optional<double> directions(const Entry& space) {
  if (const auto of = space.number("of")) {
    return of;
  }
  const auto source = space.number("source_width"), target = space.number("target_width");
  return source && target ? std::optional(std::min(*source, *target)) : std::nullopt;
}

}  // namespace

void add_spaces(const std::vector<Entry>& spaces, std::vector<Part>& parts) {
  constexpr std::array kKeys = {"before", "after",     "centred",   "residual",  "rank",
                                "of",     "completed", "condition", "asymmetry", "orthogonality",
                                "energy"};
  constexpr size_t kMostRows = 5000;
  const auto number = [](const Entry& space, const std::string& key) {
    return key == "of" ? directions(space) : space.number(key);
  };
  Table table = {.caption = "Spaces", .columns = {{"space", false}}, .fold = "Table of all spaces"};
  for (const char* key : kKeys) {
    if (std::any_of(spaces.begin(), spaces.end(), [&](const Entry& space) {
          return number(space, key).has_value();
        })) {
      table.columns.push_back({key, true});
    }
  }
  for (const auto& space : spaces) {
    std::vector<Cell> row = {{space.text("space", "-")}};
    for (size_t i = 1; i < table.columns.size(); ++i) {
      row.push_back({number_text(number(space, table.columns[i].title))});
    }
    table.rows.push_back(std::move(row));
  }
  if (table.columns.size() > 1 && spaces.size() <= kMostRows) {
    parts.emplace_back(std::move(table));
  }
}

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
  add_spaces(spaces, section.parts);
  return {.story = std::move(story), .section = std::move(section)};
}

}  // namespace theseus::report
