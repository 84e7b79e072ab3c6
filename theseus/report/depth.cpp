#include <algorithm>

#include <fmt/format.h>

#include "theseus/report/chapters.h"

// Which blocks went with which, where the models are not equally deep.
namespace theseus::report {
namespace {

void add_pairs(const Entry& depth, const std::string& mode, std::vector<Part>& parts) {
  const auto sources = depth.entries("source_blocks");
  Table table = {
      .caption = "Depth: " + mode,
      .columns = {
          {"target block", false}, {"source blocks", false}, {"share of the update", true}}};
  for (const auto& pair : depth.entries("pairs")) {
    const auto index = pair.number("source", -1);
    std::string blocks;
    if (index >= 0 && index < static_cast<double>(sources.size())) {
      for (const auto& part : sources[static_cast<size_t>(index)].matrix("parts")) {
        blocks += blocks.empty() ? "" : " + ";
        blocks += part.size() < 2 || part[1] == 1 ? "" : number_text(part[1]) + " of ";
        blocks += part.empty() ? "-" : number_text(part[0]);
      }
    }
    table.rows.push_back(
        {{number_text(pair.number("target"))}, {blocks}, {number_text(pair.number("share"))}});
  }
  if (!table.rows.empty()) {
    parts.emplace_back(std::move(table));
  }
}

void add_similarity(const Entry& depth, std::vector<Part>& parts) {
  constexpr size_t kMostFields = 40000;
  const auto rows = depth.matrix("similarity");
  if (rows.empty() || rows.front().empty() || rows.size() * rows.front().size() > kMostFields) {
    return;
  }
  Table table = {
      .caption = "Similarity of source and target blocks",
      .columns = {{"source block", false}},
      .fold = "Similarity of source and target blocks"};
  for (size_t j = 0; j < rows.front().size(); ++j) {
    table.columns.push_back({"target block " + std::to_string(j), true});
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::vector<Cell> row = {{std::to_string(i)}};
    for (const auto value : rows[i]) {
      row.push_back({number_text(value)});
    }
    table.rows.push_back(std::move(row));
  }
  parts.emplace_back(std::move(table));
}

}  // namespace

void add_depth(const Entry& entry, std::vector<Part>& parts) {
  const auto depth = entry.entry("depth");
  const auto mode = depth ? depth->text("mode") : "";
  if (mode.empty() || mode == "block by block") {
    return;
  }
  add_pairs(*depth, mode, parts);
  add_similarity(*depth, parts);
}

}  // namespace theseus::report
