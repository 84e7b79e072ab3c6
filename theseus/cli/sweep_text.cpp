#include "theseus/cli/sweep_text.h"

#include <fmt/format.h>

#include "theseus/cli/evaluate_options.h"

namespace theseus::cli {

std::string curve_text(const nlohmann::ordered_json& record) {
  const std::string metric = record.at("metric");
  const bool plain = metric == "perplexity" || metric == "agreement";  // as they are, not percent
  const double by = plain ? 1 : 100;
  const int digits = metric == "agreement" ? 4 : 2;
  const auto line = [&](const std::string& name, const nlohmann::ordered_json& row) {
    return fmt::format(
        "{:<12} {:12.{}f}  ({:.{}f} to {:.{}f}){}\n", name, by * row.at("value").get<double>(),
        digits, by * row.at("low").get<double>(), digits, by * row.at("high").get<double>(), digits,
        row.contains("cosine")
            ? fmt::format(
                  "  cosine {:.4f}, centred {:.4f}", row.at("cosine").get<double>(),
                  row.at("centred").get<double>())
            : "");
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
