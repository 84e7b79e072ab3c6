#include "theseus/evaluate/compare_notes.h"

#include "theseus/base/text.h"

namespace theseus::evaluate {

using nlohmann::ordered_json;

void add_prompts_of(const std::string& setting, const ordered_json& cell, ordered_json& record) {
  if (cell.contains("prompts")) {
    record["prompts"][setting] = cell.at("prompts");
  }
}

void add_cell_notes(const CellNotes& said, size_t rows, std::vector<std::string>& notes) {
  constexpr size_t kMethods = 4;  // that are shown
  for (const auto& [where, methods] : said) {
    const auto by = methods.size() < rows ? " (" + joined(methods, kMethods) + ")" : "";
    notes.push_back(where.first + by + ": " + where.second);
  }
}

void add_notes(
    const ordered_json& record, const ordered_json& table, std::vector<std::string>& notes) {
  using Words = std::vector<std::string>;
  constexpr size_t kPrompts = 3, kCells = 8;  // that are shown
  if (record.contains("prompts")) {
    for (const auto& [setting, prompts] : record.at("prompts").items()) {
      notes.push_back("prompts of " + setting + ": " + joined(prompts.get<Words>(), kPrompts));
    }
  }
  Words cells;
  for (const auto& row : table) {
    for (const auto& [setting, cell] : row.at("cells").items()) {
      if (cell.contains("validation") && cell.at("alpha") == 0) {
        cells.push_back(row.at("method").get<std::string>() + " on " + setting);
      }
    }
  }
  if (!cells.empty()) {
    notes.push_back(
        "alpha 0: on the examples to choose by the update did not help at any strength: " +
        joined(cells, kCells));
  }
}

}  // namespace theseus::evaluate
