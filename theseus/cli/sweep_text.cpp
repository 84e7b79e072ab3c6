#include "theseus/cli/sweep_text.h"

#include <fmt/format.h>

#include "theseus/cli/evaluate_options.h"

namespace theseus::cli {

std::string curve_text(const nlohmann::ordered_json& record) {
  const std::string metric = record.at("metric");
  const bool plain = metric == "perplexity";  // as it is, not percent
  const double by = plain ? 1 : 100;
  const auto line = [&](const std::string& name, const nlohmann::ordered_json& row) {
    return fmt::format(
        "{:<12} {:12.2f}  ({:.2f} to {:.2f})\n", name, by * row.at("value").get<double>(),
        by * row.at("low").get<double>(), by * row.at("high").get<double>());
  };
  auto text =
      fmt::format("{:<12} {:>12}  (95 % interval)\n", "alpha", metric + (plain ? "" : " in %"));
  text += line("base", record.at("base"));
  for (const auto& row : record.at("curve")) {
    text += line(fmt::format("{:.3g}", row.at("alpha").get<double>()), row);
  }
  text += fmt::format("best: --alpha {:.3g}\n", record.at("best").at("alpha").get<double>());
  text += prompts_text(record);
  for (const auto& note : record.at("notes")) {
    text += "note: " + note.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace theseus::cli
