#include "theseus/cli/summary.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "theseus/base/units.h"
#include "theseus/model/parameter.h"

namespace theseus::cli {
namespace {

using nlohmann::ordered_json;

struct Row {
  std::string name, action, reason;
  int64_t count = 1;
};

// Parameters of one place in all blocks that share their fate become one row.
std::vector<Row> rows_of(const ordered_json& parameters, bool every) {
  std::vector<Row> rows;
  std::map<std::string, size_t> known;
  for (const auto& parameter : parameters) {
    Row row{
        .name = parameter.at("parameter"),
        .action = parameter.at("action"),
        .reason = parameter.at("reason")};
    if (!every) {
      row.name = model::role_of(row.name);
      row.reason = model::role_of(row.reason);
      if (const auto product = row.reason.find(" x "); product != std::string::npos) {
        row.reason =
            row.reason.substr(0, product + 3) + model::role_of(row.reason.substr(product + 3));
      }
    }
    const auto key = row.name + "|" + row.action + "|" + row.reason;
    const auto [place, first] = known.try_emplace(key, rows.size());
    if (first) {
      rows.push_back(std::move(row));
    } else {
      ++rows[place->second].count;
    }
  }
  return rows;
}

std::string depth_text(const ordered_json& depth) {
  const auto mode = depth.at("mode").get<std::string>();
  std::string text = fmt::format("depth        {}", mode);
  if (mode == "block by block") {
    return text + "\n";
  }
  text += "; target block <- source blocks (times share of the update):\n";
  for (const auto& pair : depth.at("pairs")) {
    const auto& block = depth.at("source_blocks").at(pair.at("source").get<size_t>());
    std::string parts;
    for (const auto& part : block.at("parts")) {
      const auto share = part.at(1).get<double>();
      parts += fmt::format(
          "{}{}{}", parts.empty() ? "" : " + ", share == 1 ? "" : fmt::format("{:.3g} * ", share),
          part.at(0).get<int64_t>());
    }
    const auto share = pair.at("share").get<double>();
    text += fmt::format(
        "             {} <- {}{}\n", pair.at("target").get<int64_t>(), parts,
        share == 1 ? "" : fmt::format(" (times {:.3g})", share));
  }
  return text;
}

// Said where rows are few beside the width.
std::string statistics_text(const ordered_json& statistics) {
  const auto rows = statistics.at("rows").get<int64_t>();
  return rows == 0
             ? ""
             : fmt::format(
                   "statistics   rows of {} spaces are kept, moments of {} summed up; {} maps "
                   "as factors\n",
                   rows, statistics.at("moments").get<int64_t>(),
                   statistics.at("factored_maps").get<int64_t>());
}

// Where it is not the host's.
std::string memory_place(const ordered_json& schedule) {
  const auto device = schedule.at("memory_of").get<std::string>();
  return device == "cpu" ? ""
                         : fmt::format(
                               ", on {}: CUDA, weights of the blocks at hand, hidden states, "
                               "statistics and maps (libtorch keeps more where there is more); the "
                               "host holds the program with its libraries, and what is carried "
                               "until it is written",
                               device);
}

std::string schedule_text(const ordered_json& schedule) {
  const auto& flops = schedule.at("flops");
  return statistics_text(schedule.at("statistics")) +
         fmt::format(
             "groups       {}, hidden states {} ({})\n"
             "memory       {} {} at the peak{}\n"
             "operations   {:.3g} forward, {:.3g} statistics, {:.3g} solve, {:.3g} carry (flop)\n",
             schedule.at("groups").size(), schedule.at("hidden_states").get<std::string>(),
             bytes_text(schedule.at("hidden_state_bytes").get<int64_t>()),
             schedule.at("memory_of") == "cpu" ? "about" : "at least",
             bytes_text(schedule.at("peak_memory_bytes").get<int64_t>()), memory_place(schedule),
             flops.at("forward").get<double>(), flops.at("statistics").get<double>(),
             flops.at("solve").get<double>(), flops.at("carry").get<double>());
}

std::string notes_text(const ordered_json& record) {
  std::string text;
  if (record.contains("notes")) {
    for (const auto& note : record.at("notes")) {
      text += fmt::format("note: {}\n", note.get<std::string>());
    }
  }
  return text;
}

std::string totals_text(const ordered_json& totals) {
  std::vector<std::string> parts;
  for (const auto& [action, count] : totals.items()) {
    parts.push_back(fmt::format("{} {}", count.get<int64_t>(), action));
  }
  return fmt::format("parameters   {}\n", fmt::join(parts, ", "));
}

}  // namespace

std::string plan_text(const ordered_json& plan, bool every) {
  const auto rows = rows_of(plan.at("parameters"), every);
  size_t width = 0;
  for (const auto& row : rows) {
    width = std::max(width, row.name.size());
  }
  std::string text;
  for (const auto& row : rows) {
    const auto count = row.count > 1 ? fmt::format(" ({} times)", row.count) : "";
    text += fmt::format("{:<{}}  {:<8} {}{}\n", row.name, width, row.action, row.reason, count);
  }
  text += "\n" + totals_text(plan.at("totals"));
  const auto dtype = plan.value("dtype", "float32");
  text += fmt::format(
      "method       {}{}\n", plan.at("method").get<std::string>(),
      dtype == "float32" ? "" : ", models in " + dtype);
  if (plan.contains("tokens")) {
    for (const auto& [tower, word] : plan.at("tokens").items()) {
      text += fmt::format("rows         {}: {}\n", tower, word.get<std::string>());
    }
  }
  if (plan.contains("examples")) {
    const auto& examples = plan.at("examples");
    const bool all = examples.at("used") == examples.at("of");
    text += fmt::format(
        "examples     {} of {}{}\n", examples.at("used").get<int64_t>(),
        examples.at("of").get<int64_t>(),
        all ? ""
            : fmt::format(
                  ", drawn by seed {} (--draw says how many)", examples.at("seed").get<int64_t>()));
  }
  text += depth_text(plan.at("depth"));
  if (plan.contains("schedule")) {
    text += schedule_text(plan.at("schedule"));
  }
  if (plan.contains("seconds")) {
    text += fmt::format(
        "time         about {} on {}, when nothing else runs there\n",
        duration_text(plan.at("seconds").get<double>()), plan.at("device").get<std::string>());
  }
  text += fmt::format(
      "disk         {} for the output as {} and what is kept until then\n",
      bytes_text(plan.at("disk_bytes").get<int64_t>()), plan.at("write").get<std::string>());
  if (plan.contains("output_dtype")) {
    text +=
        fmt::format("stored in    {}\n", plan.at("output_dtype").at("written").get<std::string>());
  }
  return text + notes_text(plan);
}

std::string history_text(const ordered_json& record) {
  std::string text;
  if (record.contains("there_before")) {
    text += "it was there already: the same command wrote it before\n";
  }
  if (record.contains("removed")) {
    text += fmt::format(
        "removed {}, which an interrupted run had left\n", record.at("removed").get<std::string>());
  }
  if (record.contains("resumed")) {
    const auto& resumed = record.at("resumed");
    const auto at = resumed.at("at").get<std::string>();
    text += fmt::format(
        "went on with the work in {}, at {}\n", resumed.at("from").get<std::string>(),
        at.empty() ? "the output: every map was there" : at);
  }
  return text;
}

std::string result_text(const ordered_json& record, const std::string& out) {
  std::string text;
  if (record.contains("totals")) {
    text += totals_text(record.at("totals"));
  }
  if (record.contains("update")) {
    text += fmt::format(
        "update       norm {:.4g} in the source, {:.4g} as carried; {:.3g} % of its square is left "
        "behind\n",
        record.at("update").at("norm").get<double>(),
        record.at("update").at("carried_norm").get<double>(),
        100 * record.at("update").at("left_behind_share").get<double>());
  }
  if (record.contains("output_dtype")) {
    const auto& stored = record.at("output_dtype");
    text += fmt::format(
        "stored in    {}; {:.3g} % of the update's square is lost to rounding\n",
        stored.at("written").get<std::string>(), 100 * stored.at("lost").get<double>());
  }
  double worst = 0;
  size_t isometries = 0;
  for (const auto& space : record.at("spaces")) {
    if (space.contains("orthogonality")) {
      worst = std::max(worst, space.at("orthogonality").get<double>());
      ++isometries;
    }
  }
  text += fmt::format("maps         {}", record.at("spaces").size());
  text += isometries > 0 ? fmt::format(", orthogonal to {:.1e}\n", worst) : std::string("\n");
  text += notes_text(record);
  return text + fmt::format("written to {}\n", out) + history_text(record);
}

std::string several_text(
    const std::vector<ordered_json>& records, const std::vector<output::JobOptions>& jobs) {
  std::string text;
  std::map<std::string, size_t> notes;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto& update = records[i].at("update");
    text += fmt::format(
        "{}: norm {:.4g} in the source, {:.4g} as carried, {:.3g} % of its square left "
        "behind{}{}\n",
        jobs[i].out.string(), update.at("norm").get<double>(),
        update.at("carried_norm").get<double>(), 100 * update.at("left_behind_share").get<double>(),
        records[i].contains("output_dtype")
            ? fmt::format(
                  ", {:.3g} % lost by rounding to {}",
                  100 * records[i].at("output_dtype").at("lost").get<double>(),
                  records[i].at("output_dtype").at("written").get<std::string>())
            : "",
        records[i].contains("there_before") ? "; it was there already" : "");
    auto history = records[i];
    history.erase("there_before");
    text += history_text(history);
    for (const auto& note : records[i].at("notes")) {
      ++notes[note.get<std::string>()];
    }
  }
  for (const auto& [note, count] : notes) {
    text += fmt::format(
        "note: {}{}\n", note,
        count < records.size() ? fmt::format(" ({} of {} updates)", count, records.size()) : "");
  }
  return text;
}

}  // namespace theseus::cli
