#include <algorithm>
#include <array>

#include "theseus/report/chapters.h"

namespace theseus::report {

Table provenance(const Document& document) {
  // Shown in this order, then what else there is; results are in the other sections.
  constexpr std::array<std::string_view, 9> kFirst = {"theseus",  "kind",        "options",
                                                      "source",   "tuned",       "target",
                                                      "examples", "calibration", "method"};
  constexpr std::array<std::string_view, 16> kResults = {
      "parameters", "spaces",  "notes", "update",  "depth",   "totals", "curve",  "best",
      "base",       "columns", "rows",  "verdict", "reasons", "files",  "losses", "layers"};
  const auto entry = document.entry();
  std::vector<std::string> keys(kFirst.begin(), kFirst.end());
  for (const auto& key : entry.keys()) {
    const bool known = std::find(keys.begin(), keys.end(), key) != keys.end() ||
                       std::find(kResults.begin(), kResults.end(), key) != kResults.end();
    if (!known) {
      keys.push_back(key);
    }
  }
  Table table = {
      .caption = document.path.string(), .columns = {{"field", false}, {"value", false}}};
  for (const auto& key : keys) {
    for (const auto& [name, value] : entry.flat(key)) {
      table.rows.push_back({{name}, {value}});
    }
  }
  return table;
}

}  // namespace theseus::report
