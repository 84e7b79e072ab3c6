#include "theseus/cli/sweep_text.h"

#include <fmt/format.h>

namespace theseus::cli {

std::string curve_text(const nlohmann::ordered_json& record) {
  const double by = record.at("metric") == "perplexity" ? 1 : 100;
  const auto line = [&](const std::string& name, const nlohmann::ordered_json& row) {
    return fmt::format(
        "{:<12} {:8.2f}  ({:.2f} to {:.2f}){}\n", name, by * row.at("value").get<double>(),
        by * row.at("low").get<double>(), by * row.at("high").get<double>(),
        row.contains("cosine")
            ? fmt::format(
                  "  cosine {:.4f}, centred {:.2f}", row.at("cosine").get<double>(),
                  by * row.at("centred").get<double>())
            : "");
  };
  auto text = fmt::format(
      "{:<12} {:>8}  (95 % interval)\n", "alpha", record.at("metric").get<std::string>());
  text += line("base", record.at("base"));
  for (const auto& row : record.at("curve")) {
    text += line(fmt::format("{:.3g}", row.at("alpha").get<double>()), row);
  }
  text += fmt::format("best: --alpha {:.3g}\n", record.at("best").at("alpha").get<double>());
  for (const auto& note : record.at("notes")) {
    text += "note: " + note.get<std::string>() + "\n";
  }
  return text;
}

}  // namespace theseus::cli
