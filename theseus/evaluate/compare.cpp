#include "theseus/evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/evaluate/compare_notes.h"
#include "theseus/evaluate/prepared_once.h"
#include "theseus/maps/method.h"
#include "theseus/output/method_words.h"
#include "theseus/output/supervision.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"
#include "theseus/transport/depth.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* kNone = "none";

void write_json(const fs::path& path, const ordered_json& json) {
  AtomicFile file(path);
  file.append(json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace));
  file.append("\n");
  file.commit();
}

EvaluateOptions on(
    const CompareOptions& options, const Setting& setting, const std::string& split) {
  auto how = options.evaluate;
  how.data = setting.data;
  how.split = split;
  how.feed.pack = how.task.empty() || how.task == "perplexity" ? options.job.pack : 0;
  return how;
}

// The job of a cell, whose method may bring options.
output::JobOptions job_of(
    const CompareOptions& options, const Setting& setting, const std::string& method) {
  auto job = options.job;
  job.tuned = setting.tuned;
  const auto& how = options.evaluate;
  job.wording = {how.wording, how.second, how.answer};
  output::set_method(method, job);
  job.write = "update";
  job.words = {{"command", "compare"}, {"method", method}, {"tuned", setting.tuned}};
  return job;
}

// Whether a method looks at examples at all, or the match of its blocks does.
bool uses_calibration(const CompareOptions& options, const std::string& method) {
  if (method == kNone) {
    return false;
  }
  auto job = options.job;
  output::set_method(method, job);
  if (output::method_of(method).needs.moments || output::needs_labels(job)) {
    return true;
  }
  const auto source = model::Model::open(job.source), target = model::Model::open(job.target);
  return job.align.depth == transport::Depth::kMatch &&
         transport::depths_differ(source.architecture(), target.architecture());
}

// |carried| - |source's|, of all matrices of the update together.
double norm_error(const fs::path& directory) {
  const auto record = Json::parse_file(directory / output::kRecordFile).raw();
  double before = 0, after = 0;
  for (const auto& row : record.at("parameters")) {
    if (row.contains("source_norm") && row.at("shape").size() == 2) {
      before += std::pow(row.at("source_norm").get<double>(), 2);
      after += std::pow(row.at("target_norm").get<double>(), 2);
    }
  }
  return std::sqrt(after) - std::sqrt(before);
}

// One cell: the target itself, or with the update that `method` carries.
ordered_json cell(
    const CompareOptions& options,
    const Setting& setting,
    const std::string& method,
    PreparedOnce& prepared,
    const fs::path& directory) {
  const auto nothing = [](auto&&...) {};
  auto model = model::Model::open(options.job.target, {.placement = options.job.placement});
  const auto measured = [&] {
    return evaluate(model, on(options, setting, options.test), nothing);
  };
  if (method == kNone) {
    return measured();
  }
  auto job = job_of(options, setting, method);
  job.out = directory;
  ordered_json drawn;
  if (uses_calibration(options, method)) {
    drawn = prepared.give(job);
    job.words["calibration"] = drawn;
  } else {
    job.split.clear();
    job.labels = false;
    job.pack = 0;
    job.wording = {"", "", ""};
  }
  std::error_code ignored;
  if (!fs::exists(directory, ignored)) {
    output::transport_job(job, nothing);
  }
  const auto update = read_update(directory.string(), model);
  auto alpha = options.strengths.first;
  ordered_json best;
  if (options.strengths.last > options.strengths.first) {
    best = sweep(
        model, update, on(options, setting, options.validation), options.strengths,
        nothing)["best"];
    alpha = best.at("alpha");
  }
  Strengthened strengthened(model, update);
  strengthened.set(1);
  const auto at_one = best.is_null() ? ordered_json() : measured();
  strengthened.set(alpha);
  auto found = measured();
  found["alpha"] = alpha;
  found["norm_error"] = norm_error(directory);
  if (!best.is_null()) {
    found["validation"] = best.at("value");
    found["value_at_one"] = at_one.at("value");
  }
  if (!drawn.is_null()) {
    found["calibration"] = drawn;
  }
  return found;
}

// Of the files of a model.
ordered_json stamps_of_model(const fs::path& path) {
  auto files = output::entries_of(path);
  files.push_back(path);
  return output::stamps_of(files);
}

// Everything that the cells depend on but methods and batches, which are in their names.
ordered_json identity_of(const CompareOptions& options) {
  const auto& sampling = options.job.align.sampling;
  const auto& how = options.evaluate;
  ordered_json settings = ordered_json::array();
  const bool worded = !(how.wording + how.second + how.answer).empty() || options.job.pack > 0;
  for (const auto& setting : options.settings) {
    settings.push_back(
        {setting.name, setting.tuned, setting.data, setting.calibration,
         stamps_of_model(setting.tuned)});
  }
  ordered_json identity = {
      {"version", options.job.version},
      {"source", options.job.source.string()},
      {"target", options.job.target.string()},
      {"models", {stamps_of_model(options.job.source), stamps_of_model(options.job.target)}},
      {"settings", settings},
      {"calibration",
       {options.job.split, options.job.shots, sampling.batch_size, sampling.seed,
        options.job.labels}},
      {"align", {options.job.align.match, options.job.align.depth == transport::Depth::kMatch}},
      {"measure",
       {how.task, how.limit, how.training_limit, how.seed, options.validation, options.test,
        how.settings.templates}},
      {"strengths",
       {options.strengths.first, options.strengths.last, options.strengths.step,
        options.strengths.patience}}};
  if (worded) {
    identity["texts"] = {how.wording, how.second, how.answer, options.job.pack};
  }
  return identity;
}

// Cells of another comparison must not end up in this table.
void require_same(const CompareOptions& options, const fs::path& file) {
  const auto identity = identity_of(options);
  std::error_code ignored;
  if (!fs::exists(file, ignored)) {
    write_json(file, identity);
    return;
  }
  const auto found =
      ordered_json::parse(read_text_file(file, 1 << 20), nullptr, /*allow_exceptions=*/false);
  require(
      found == identity, "--out: ", file.parent_path().string(),
      " holds a comparison of something else, or with other options; choose another directory");
}

bool fits(const std::string& method, const CompareOptions& options) {
  if (method == kNone || !output::method_of(method).same_widths) {
    return true;
  }
  const auto source = model::Model::open(options.job.source);
  const auto target = model::Model::open(options.job.target);
  const auto& from = source.architecture().towers;
  const auto& to = target.architecture().towers;
  return std::equal(
      from.begin(), from.end(), to.begin(), to.end(),
      [](const auto& a, const auto& b) { return a.width == b.width; });
}

// What an earlier run measured, or now.
ordered_json known_cell(
    const CompareOptions& options,
    const Setting& setting,
    const std::string& method,
    PreparedOnce& prepared,
    const fs::path& place) {
  return with_context("measuring " + place.filename().string(), [&] {
    const auto file = place.string() + ".json";
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      write_json(file, cell(options, setting, method, prepared, place));
    }
    return ordered_json::parse(read_text_file(file, 1 << 20));
  });
}

ordered_json shown(const ordered_json& found) {
  ordered_json cell;
  for (const char* key :
       {"value", "low", "high", "alpha", "validation", "value_at_one", "norm_error"}) {
    if (found.contains(key)) {
      cell[key] = found.at(key);
    }
  }
  return cell;
}

std::string how_scored(const CompareOptions& options) {
  if (options.strengths.last > options.strengths.first) {
    return c10::str(
        "strengths were chosen on the ", options.validation, " split, scores are of the ",
        options.test, " split");
  }
  return c10::str(
      "strength ", options.strengths.first, ", scores are of the ", options.test, " split");
}

std::vector<int64_t> counts_of(const CompareOptions& options) {
  return options.batches.empty() ? std::vector<int64_t>{0} : options.batches;
}

struct Row {
  std::string method;
  int64_t batches = 0;
  bool counts = false;  // whether the number of batches makes a difference
};

// Without activations a method has one row, whatever the number of batches.
std::vector<Row> rows_of(const CompareOptions& options, std::vector<std::string>& notes) {
  std::vector<Row> rows;
  for (const auto& method : options.methods) {
    if (!fits(method, options)) {
      notes.push_back("left out, because it needs equal widths: " + method);
      continue;
    }
    const bool counts = uses_calibration(options, method);
    for (const auto count : counts_of(options)) {
      rows.push_back({method, count, counts});
      if (!counts) {
        break;
      }
    }
  }
  return rows;
}

}  // namespace

ordered_json compare(
    const CompareOptions& options, const std::string& directory, const Watch& watch) {
  require(!options.methods.empty() && !options.settings.empty(), "there is nothing to compare");
  const fs::path place = directory;
  std::error_code error;
  fs::create_directories(place / "cells", error);
  require(!error, "--out: cannot make ", directory, ": ", error.message());
  require_same(options, place / "comparison.json");
  ordered_json record = {{"kind", "compare"}, {"columns", ordered_json::array()}};
  auto notes = std::vector<std::string>{how_scored(options)};
  const auto rows = rows_of(options, notes);
  require(!rows.empty(), "no method is left to compare");
  auto table = ordered_json::array();
  for (const auto& row : rows) {
    table.push_back({{"method", row.method}});
    if (row.counts && row.batches > 0) {
      table.back()["batches"] = row.batches;
      table.back()["shots"] = c10::str("B = ", row.batches);
    }
  }
  const auto all = static_cast<int64_t>(rows.size() * options.settings.size());
  int64_t done = 0;
  const auto fill = [&](const Setting& setting, int64_t count) {
    PreparedOnce prepared(
        setting.calibration.empty() ? setting.data : setting.calibration, count,
        place / c10::str("calibration-", setting.name, "-", count, ".safetensors"));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].batches != count) {
        continue;
      }
      watch(done++, all, rows[i].method + " on " + setting.name);
      const auto name =
          c10::str(setting.name, "-", rows[i].method, "-", rows[i].counts ? count : 0);
      const auto found =
          known_cell(options, setting, rows[i].method, prepared, place / "cells" / name);
      table[i]["cells"][setting.name] = shown(found);
      record["metric"] = found.at("metric");
      add_prompts_of(setting.name, found, record);
    }
    prepared.done();
  };
  for (const auto& setting : options.settings) {
    record["columns"].push_back(setting.name);
    for (const auto count : counts_of(options)) {
      fill(setting, count);
    }
  }
  for (auto& row : table) {
    double sum = 0;
    for (const auto& cell : row.at("cells")) {
      sum += cell.at("value").get<double>();
    }
    row["mean"] = sum / static_cast<double>(row.at("cells").size());
  }
  add_notes(record, table, options.validation, notes);
  watch(all, all, "compared");
  record["higher_is_better"] = record.at("metric") != "perplexity";
  record["rows"] = table;
  record["notes"] = notes;
  write_json(fs::path(directory) / "compare.json", record);
  return record;
}

}  // namespace theseus::evaluate
