#include "theseus/cli/compare_text.h"

#include <fmt/format.h>

namespace theseus::cli {

std::string compare_markdown(const nlohmann::ordered_json& record) {
  const double by = record.at("metric") == "perplexity" ? 1 : 100;
  std::string head = "| method |", line = "|---|", text;
  for (const auto& column : record.at("columns")) {
    head += " " + column.get<std::string>() + " |";
    line += "---|";
  }
  const bool several = record.at("columns").size() > 1;
  head += several ? " mean |" : "";
  line += several ? "---|" : "";
  for (const auto& row : record.at("rows")) {
    text += "| " + row.at("method").get<std::string>();
    text += row.contains("shots") ? ", " + row.at("shots").get<std::string>() + " |" : " |";
    for (const auto& column : record.at("columns")) {
      const auto& cell = row.at("cells").at(column.get<std::string>());
      text += fmt::format(
          " {:.2f} ({:.2f} to {:.2f}){} |", by * cell.at("value").get<double>(),
          by * cell.at("low").get<double>(), by * cell.at("high").get<double>(),
          cell.contains("alpha") ? fmt::format(", alpha {:.3g}", cell.at("alpha").get<double>())
                                 : "");
    }
    text += several ? fmt::format(" {:.2f} |\n", by * row.at("mean").get<double>()) : "\n";
  }
  text += "\n" + record.at("metric").get<std::string>() + (by == 100 ? " in percent" : "") +
          ", with 95 % intervals\n";
  for (const auto& note : record.at("notes")) {
    text += "\n" + note.get<std::string>() + "\n";
  }
  return head + "\n" + line + "\n" + text;
}

}  // namespace theseus::cli
