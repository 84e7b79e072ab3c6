#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/report/chapters.h"

// What finetune did, and trainings beside each other.
namespace theseus::report {
namespace {

// g++ 12 sees an overrun where a literal is put into a part at once.
const std::string kApart =
    "They were measured on different examples, so their values cannot be compared.";
constexpr size_t kMostSpots = 2000;

// By `key` of the entries of `list`; those without it are passed over.
std::vector<Spot> spots_of(const Entry& entry, const char* list, const char* key) {
  std::vector<Spot> spots;
  for (const auto& one : entry.entries(list)) {
    const auto step = one.number("step"), value = one.number(key);
    require(step.has_value(), one.where(), ": step is missing");
    if (value) {
      spots.push_back({*step, *value});
    }
  }
  require(
      spots.size() <= kMostSpots, entry.where(), ": ", list, " has ", spots.size(),
      " points; a report shows at most ", kMostSpots);
  std::stable_sort(spots.begin(), spots.end(), [](const Spot& left, const Spot& right) {
    return left.x < right.x;
  });
  return spots;
}

std::string name_of(const Document& document) {
  const auto folder = document.path.parent_path().filename().string();
  const auto name = document.path.filename() == "theseus.json" && !folder.empty()
                        ? folder
                        : document.path.string();
  const auto start = document.entry().text("start_from");
  return start.empty() ? name : fmt::format("{} (from {})", name, short_name(start));
}

std::string path_of(const Entry& entry, const char* key, const char* inner) {
  const auto object = entry.entry(key);
  return object ? short_name(object->text(inner)) : std::string();
}

bool higher_is_better(const Entry& entry) {
  return entry.text("metric") == "accuracy";
}

std::string training_story(const Document& document) {
  const auto entry = document.entry();
  const auto start = entry.text("start_from");
  auto words = fmt::format(
      "{} was fine-tuned on {} for {} steps of {} examples{}.", path_of(entry, "model", "path"),
      path_of(entry, "data", "data"), number_text(entry.number("steps")),
      number_text(entry.number("batch_size")),
      start.empty()
          ? ""
          : fmt::format(
                ", from {} at strength {}", short_name(start), number_text(entry.number("alpha"))));
  const auto measured = spots_of(entry, "curve", "value");
  if (const auto best = entry.entry("best"); best && !measured.empty()) {
    words += fmt::format(
        " Its {} went from {} to {} at step {}, which was kept.", entry.text("metric", "value"),
        number_text(measured.front().y), number_text(best->number("value")),
        number_text(best->number("step")));
  }
  return words;
}

// Where it first is at least as good; nothing: it never is.
std::optional<double> reached(const std::vector<Spot>& spots, double value, bool higher) {
  const auto found = std::find_if(spots.begin(), spots.end(), [&](const Spot& spot) {
    return higher ? spot.y >= value : spot.y <= value;
  });
  return found == spots.end() ? std::nullopt : std::optional(found->x);
}

double best_of(const std::vector<Spot>& spots, bool higher) {
  const auto less = [](const Spot& left, const Spot& right) { return left.y < right.y; };
  return higher ? std::max_element(spots.begin(), spots.end(), less)->y
                : std::min_element(spots.begin(), spots.end(), less)->y;
}

// Values between the start of the first line and the best that all of them come to, then what only some come to.
std::vector<double> values_to_reach(const Lines& lines, bool higher) {
  const auto better = [&](double left, double right) {
    return higher ? left > right : left < right;
  };
  const double from = lines.lines.front().spots.front().y;
  std::vector<double> bests;
  for (const auto& line : lines.lines) {
    bests.push_back(best_of(line.spots, higher));
  }
  std::sort(
      bests.begin(), bests.end(), [&](double left, double right) { return better(right, left); });
  bests.erase(std::unique(bests.begin(), bests.end()), bests.end());
  const double all = bests.front();
  std::vector<double> values;
  if (better(all, from)) {
    for (const double share : {0.5, 0.8, 0.9}) {
      values.push_back(from + share * (all - from));
    }
  }
  std::copy_if(bests.begin(), bests.end(), std::back_inserter(values), [&](double best) {
    return better(best, from);
  });
  return values;
}

// Nothing when no line gets better than the first one starts.
std::optional<Table> steps_needed(const Lines& lines, const std::string& metric, bool higher) {
  Table table = {
      .caption = fmt::format("Steps to the same {}, as far as it was measured", metric),
      .columns = {{metric, true}}};
  for (const auto& line : lines.lines) {
    table.columns.push_back({line.name, true});
  }
  for (const double value : values_to_reach(lines, higher)) {
    std::vector<Cell> row = {{number_text(value)}};
    for (const auto& line : lines.lines) {
      const auto step = reached(line.spots, value, higher);
      row.push_back({step ? number_text(step) : "not reached"});
    }
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

// A training from the model itself stands first: others are compared with it.
std::vector<const Document*> trainings_of(const std::vector<Document>& documents) {
  std::vector<const Document*> found;
  for (const auto& document : documents) {
    const bool measured =
        document.kind == Kind::kFinetune && !spots_of(document.entry(), "curve", "value").empty();
    if (measured && (found.empty() ||
                     found.front()->entry().text("metric") == document.entry().text("metric"))) {
      found.push_back(&document);
    }
  }
  std::stable_partition(found.begin(), found.end(), [](const Document* document) {
    return document->entry().text("start_from").empty();
  });
  return found;
}

}  // namespace

Chapter tell_finetune(const Document& document) {
  const auto entry = document.entry();
  const auto metric = entry.text("metric", "value");
  Section section = {.title = "Training: " + name_of(document)};
  Lines losses = {.caption = "Loss by step", .across = "step"};
  const auto add = [&](const char* name, std::vector<Spot> spots) {
    if (!spots.empty()) {
      losses.lines.push_back({name, std::move(spots)});
    }
  };
  add("training", spots_of(entry, "losses", "value"));
  add("validation", spots_of(entry, "curve", metric == "loss" ? "value" : "loss"));
  require(
      !losses.lines.empty(), entry.where(), ": losses are missing: this file is cut or damaged");
  section.parts.emplace_back(std::move(losses));
  if (auto spots = spots_of(entry, "curve", "value"); metric != "loss" && !spots.empty()) {
    section.parts.emplace_back(Lines{
        .caption = metric + " by step", .across = "step", .lines = {{metric, std::move(spots)}}});
  }
  return {.story = training_story(document), .section = std::move(section)};
}

std::optional<Section> trainings_compared(const std::vector<Document>& documents) {
  const auto trainings = trainings_of(documents);
  if (trainings.size() < 2) {
    return std::nullopt;
  }
  const auto first = trainings.front()->entry();
  const auto metric = first.text("metric", "value");
  const bool higher = higher_is_better(first);
  Lines lines = {.caption = metric + " by step", .across = "step"};
  bool same = true;
  for (const auto* training : trainings) {
    lines.lines.push_back({name_of(*training), spots_of(training->entry(), "curve", "value")});
    same = same &&
           path_of(training->entry(), "held_out", "hash") == path_of(first, "held_out", "hash");
  }
  auto table = steps_needed(lines, metric, higher);
  Section section = {.title = "Trainings compared"};
  if (!same) {
    section.parts.emplace_back(Paragraph{kApart});
  }
  section.parts.emplace_back(std::move(lines));
  if (same && table) {
    section.parts.emplace_back(std::move(*table));
  }
  return section;
}

}  // namespace theseus::report
