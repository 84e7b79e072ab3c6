#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "theseus/base/units.h"
#include "theseus/model/parameter.h"
#include "theseus/report/chapters.h"

// What a transport or an alignment did: its maps, its parameters, what it left behind.
namespace theseus::report {
namespace {

constexpr size_t kWorst = 10;

std::string examples_words(const Entry& entry) {
  const auto* key = examples_key(entry);
  const auto examples = entry.entry(key);
  if (!examples) {
    return "";
  }
  const auto count = examples->number("sequences");
  return fmt::format(
      " The maps come from {}{}.", count ? fmt::format("{:.0f} inputs of ", *count) : "",
      name_of(entry, key, "the examples"));
}

std::string totals_words(const Entry& entry) {
  const auto totals = entry.entry("totals");
  if (!totals) {
    return "";
  }
  std::string words;
  double all = 0;
  for (const auto& action : totals->keys()) {
    const auto count = totals->number(action, 0);
    all += count;
    words += fmt::format("{}{:.0f} {}", words.empty() ? "" : ", ", count, action);
  }
  return fmt::format(" Of {:.0f} parameters: {}.", all, words);
}

std::string loss_words(const Entry& entry) {
  std::string words;
  if (const auto update = entry.entry("update")) {
    const auto norm = update->number("norm");
    words += norm ? fmt::format(" The source's update has norm {}", number_text(norm)) : "";
    if (const auto carried = update->number("carried_norm"); carried && norm) {
      words += fmt::format(", as carried {}", number_text(carried));
    }
    if (const auto share = update->number("left_behind_share")) {
      words +=
          fmt::format("{} {} of its square is left behind", norm ? ";" : "", percent_text(*share));
    }
    words += words.empty() ? "" : ".";
  }
  const auto stored = entry.entry("output_dtype");
  if (const auto lost = stored ? stored->number("lost") : std::nullopt) {
    words += fmt::format(
        " It is stored in {}; rounding lost {} of the update's square.",
        stored->text("written", "another dtype"), percent_text(*lost));
  } else if (const auto loss = entry.number("rounding_loss")) {  // of an older version
    words += fmt::format(" Rounding to the target's dtype lost {} of it.", percent_text(*loss));
  }
  return words;
}

std::string transport_story(const Entry& entry) {
  const auto alpha = entry.number("alpha");
  return fmt::format(
      "What fine-tuning changed from {} to {} was carried to {}{}{}{}.{}{}{}",
      name_of(entry, "source", "the source"), name_of(entry, "tuned", "the tuned model"),
      name_of(entry, "target", "the target"),
      entry.text("method").empty() ? "" : " by the method " + entry.text("method"),
      alpha ? ", times alpha = " + number_text(alpha) : "", written_words(entry),
      examples_words(entry), totals_words(entry), loss_words(entry));
}

std::string alignment_story(const Entry& entry, size_t maps) {
  return fmt::format(
      "The spaces of {} and {} were aligned{}: {} maps, ready to carry any update between the "
      "two.{}",
      name_of(entry, "source", "the source"), name_of(entry, "target", "the target"),
      entry.text("method").empty() ? "" : " by the method " + entry.text("method"), maps,
      examples_words(entry));
}

// Relative; the error itself where the source has no norm.
std::optional<double> norm_error(const Entry& parameter) {
  const auto error = parameter.number("norm_error");
  const auto norm = parameter.number("source_norm", 0);
  return error && norm > 0 ? std::optional<double>(*error / norm) : error;
}

void add_worst(const std::vector<Entry>& parameters, std::vector<Part>& parts) {
  std::vector<std::pair<double, const Entry*>> order;
  for (const auto& parameter : parameters) {
    if (const auto error = norm_error(parameter)) {
      order.emplace_back(std::abs(*error), &parameter);
    }
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& left, const auto& right) {
    return left.first > right.first;
  });
  Table table = {
      .caption = fmt::format(
          "Worst parameters by norm error ({} of {} carried)", std::min(kWorst, order.size()),
          order.size()),
      .columns = {
          {"parameter", false},
          {"norm in the source", true},
          {"norm in the target", true},
          {"relative error", true},
          {"lost to rounding", true}}};
  for (size_t i = 0; i < std::min(kWorst, order.size()); ++i) {
    const auto& parameter = *order[i].second;
    table.rows.push_back(
        {{parameter.text("parameter")},
         {number_text(parameter.number("source_norm"))},
         {number_text(parameter.number("target_norm"))},
         {number_text(norm_error(parameter))},
         {number_text(parameter.number("rounding_loss"))}});
  }
  if (!order.empty()) {
    parts.emplace_back(std::move(table));
  }
}

void add_left_behind(const Entry& entry, std::vector<Part>& parts) {
  const auto update = entry.entry("update");
  auto left = update ? update->entries("left_behind") : std::vector<Entry>();
  if (left.empty()) {
    return;
  }
  std::stable_sort(left.begin(), left.end(), [](const Entry& one, const Entry& other) {
    return one.number("norm", 0) > other.number("norm", 0);
  });
  Table table = {
      .caption = fmt::format("Left behind ({} of {})", std::min(kWorst, left.size()), left.size()),
      .columns = {{"parameter of the source", false}, {"norm", true}, {"why", false}}};
  for (size_t i = 0; i < std::min(kWorst, left.size()); ++i) {
    table.rows.push_back(
        {{left[i].text("parameter")},
         {number_text(left[i].number("norm"))},
         {left[i].text("reason")}});
  }
  parts.emplace_back(std::move(table));
}

std::string role_of_reason(const std::string& reason) {
  const auto product = reason.find(" x ");
  return product == std::string::npos ? model::role_of(reason)
                                      : model::role_of(reason.substr(0, product)) + " x " +
                                            model::role_of(reason.substr(product + 3));
}

// Parameters of one place in all blocks that share their fate are one row.
void add_fates(const std::vector<Entry>& parameters, std::vector<Part>& parts) {
  constexpr size_t kMost = 400;
  Table table = {
      .caption = "What became of each parameter of the target",
      .columns = {{"parameter", false}, {"times", true}, {"action", false}, {"why", false}},
      .fold = "What became of each parameter of the target"};
  std::vector<int64_t> counts;
  std::map<std::vector<std::string>, size_t> known;
  for (const auto& parameter : parameters) {
    const std::vector<std::string> key = {
        model::role_of(parameter.text("parameter")), parameter.text("action"),
        role_of_reason(parameter.text("reason"))};
    const auto [place, first] = known.try_emplace(key, counts.size());
    if (first) {
      counts.push_back(0);
      table.rows.push_back({{key[0]}, {""}, {key[1]}, {key[2]}});
    }
    ++counts[place->second];
  }
  for (size_t i = 0; i < counts.size(); ++i) {
    table.rows[i][1].text = count_text(counts[i]);
  }
  if (table.rows.size() > kMost) {
    table.caption += fmt::format(" (the first {} of {} rows)", kMost, table.rows.size());
    table.rows.resize(kMost);
  }
  if (!table.rows.empty()) {
    parts.emplace_back(std::move(table));
  }
}

}  // namespace

const char* examples_key(const Entry& entry) {
  return entry.entry("examples") ? "examples" : "calibration";
}

std::string name_of(const Entry& entry, const char* key, const char* otherwise) {
  const auto side = entry.entry(key);
  const auto path = side ? side->text("path") : "";
  return path.empty() ? otherwise : short_name(path);
}

std::string written_words(const Entry& entry) {
  const auto write = entry.text("write");
  return write.empty() ? ""
                       : fmt::format(
                             ", and written as {}", write == "model"     ? "a model"
                                                    : write == "update"  ? "an update"
                                                    : write == "adapter" ? "an adapter"
                                                                         : write);
}

Chapter tell_carried(const Document& document) {
  const auto entry = document.entry();
  const bool transport = document.kind == Kind::kTransport;
  const auto spaces = entry.entries("spaces");
  const auto parameters = entry.entries("parameters");
  Section section = {
      .title = fmt::format(
          "{}: {} to {}", transport ? "Transport" : "Alignment",
          name_of(entry, transport ? "tuned" : "source", "source"),
          name_of(entry, "target", "target"))};
  add_spaces(spaces, section.parts);
  add_worst(parameters, section.parts);
  add_left_behind(entry, section.parts);
  add_depth(entry, section.parts);
  add_fates(parameters, section.parts);
  return {
      .story = transport ? transport_story(entry) : alignment_story(entry, spaces.size()),
      .section = std::move(section)};
}

}  // namespace theseus::report
