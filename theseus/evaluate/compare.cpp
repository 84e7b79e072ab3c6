#include "theseus/evaluate/compare.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/evaluate/compare_check.h"
#include "theseus/evaluate/compare_inputs.h"
#include "theseus/evaluate/compare_notes.h"
#include "theseus/evaluate/compare_place.h"
#include "theseus/evaluate/content.h"
#include "theseus/evaluate/prepared_once.h"
#include "theseus/output/imitate_job.h"
#include "theseus/output/method_words.h"
#include "theseus/output/opened.h"
#include "theseus/output/text_file.h"
#include "theseus/output/work_directory.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// The job of a cell, whose method may bring options.
output::JobOptions job_of(
    const CompareOptions& options, const Setting& setting, const std::string& method) {
  auto job = options.job;
  job.tuned = setting.tuned;
  const auto& how = options.evaluate;
  job.wording = {how.wording, how.second, how.answer};
  if (method != kImitate) {
    output::set_method(method, job);
  }
  job.write = "update";
  job.words = {{"command", "compare"}, {"method", method}, {"tuned", setting.tuned}};
  return job;
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

// What a reader should know of the examples that the update in `directory` was carried by.
std::vector<std::string> notes_on_drawn(const ordered_json& drawn, const fs::path& directory) {
  auto notes = drawn.value("notes", std::vector<std::string>());
  const auto record = ordered_json(Json::parse_file(directory / output::kRecordFile).raw());
  for (const auto& about : {drawn, record.value("examples", ordered_json())}) {
    if (about.contains("fewer")) {
      notes.push_back(about.at("fewer"));
    }
  }
  return notes;
}

// A setting, what is measured and made maps from, and where that is read once.
struct Column {
  const CompareOptions& options;
  const Setting& setting;
  const Shares& shares;
  PreparedOnce prepared, familiar;
};

// Writes the update of `method` to `directory`, unless it is there. Returns what its maps come from.
ordered_json carry(Column& column, const std::string& method, const fs::path& directory) {
  const auto nothing = [](auto&&...) {};
  auto job = job_of(column.options, column.setting, method);
  job.split = column.shares.calibration;
  job.out = directory;
  ordered_json drawn;
  auto other = job;
  if (uses_calibration(column.options, method)) {
    drawn = column.prepared.give(job);
    job.words["examples"] = drawn;
  } else {
    job.split.clear();
    job.labels = false;
    job.pack = 0;
    job.wording = {"", "", ""};
  }
  std::error_code ignored;
  if (fs::exists(directory, ignored)) {
    return drawn;
  }
  if (method == kImitate) {
    other.split.clear();
    job.words["familiar"] = column.familiar.give(other);
    job.labels = false;
    output::imitate_job(
        {.job = job, .familiar = other.calibration.string(), .fit = {.tokens = job.align.tokens}},
        nothing);
  } else {
    output::transport_job(job, nothing);
  }
  return drawn;
}

// One cell: the target itself, or with the update of `method`.
ordered_json cell(Column& column, const std::string& method, const fs::path& directory) {
  const auto nothing = [](auto&&...) {};
  const auto& options = column.options;
  auto model = model::Model::open(options.job.target, {.placement = options.job.placement});
  const auto measured = [&] {
    return evaluate(model, measured_on(options, column.setting, column.shares.test), nothing);
  };
  if (method == kNone) {
    return measured();
  }
  const auto drawn = carry(column, method, directory);
  const auto update = read_update(directory.string(), model);
  auto alpha = options.strengths.first;
  ordered_json best, more_notes = ordered_json::array();
  if (chooses(options)) {
    auto swept = sweep(
        model, update, measured_on(options, column.setting, column.shares.validation),
        options.strengths, nothing);
    best = swept["best"];
    more_notes = swept.value("notes", more_notes);
    alpha = best.at("alpha");
  }
  Strengthened strengthened(model, update);
  strengthened.set(alpha);
  auto found = measured();
  found["alpha"] = alpha;
  if (method != kImitate) {  // which keeps no norm
    found["norm_error"] = norm_error(directory);
  }
  if (!best.is_null()) {
    found["validation"] = best.at("value");
    strengthened.set(1);
    found["value_at_one"] = alpha == 1 ? found.at("value") : measured().at("value");
    for (const auto& note : more_notes) {
      found["notes"].push_back("choosing the strength: " + note.get<std::string>());
    }
  }
  if (!drawn.is_null()) {
    found["examples"] = drawn;
    for (const auto& note : notes_on_drawn(drawn, directory)) {
      found["notes"].push_back("making maps: " + note);
    }
  }
  return found;
}

// Everything that the cells depend on but methods and batches, which are in their names.
ordered_json identity_of(const CompareOptions& options, const std::vector<Shares>& shares) {
  const auto& sampling = options.job.align.sampling;
  const auto& how = options.evaluate;
  ordered_json settings = ordered_json::array();
  const auto source = model::Model::open(options.job.source);
  const auto target = model::Model::open(options.job.target);
  const bool worded = !(how.wording + how.second + how.answer).empty() || options.job.pack > 0;
  for (size_t i = 0; i < options.settings.size(); ++i) {
    const auto& setting = options.settings[i];
    std::vector<std::string> measured = {shares[i].test};
    if (!shares[i].validation.empty()) {
      measured.push_back(shares[i].validation);
    }
    const auto& learnt = shares[i].calibration;
    settings.push_back(
        {setting.name, transport::SourceUpdate::open(setting.tuned, source).fingerprint(),
         output::hash_of_side_files(setting.tuned), content_of(setting.data, measured),
         content_of(
             setting.calibration.empty() ? setting.data : setting.calibration,
             {learnt.empty() ? data::kNotTest : learnt}),
         shares[i].calibration, shares[i].validation, shares[i].test});
  }
  ordered_json identity = {
      {"version", options.job.version},
      {"models", {content_of(source), content_of(target)}},
      {"settings", settings},
      {"examples",
       {options.job.shots, sampling.batch_size, sampling.draw, sampling.most, sampling.seed,
        options.job.labels, content_of(options.familiar, {data::kNotTest})}},
      {"align", {options.job.align.tokens, transport::word_of(options.job.align.depth)}},
      {"measure", {how.task, how.limit, how.training_limit, how.seed, how.settings.templates}},
      {"strengths",
       {options.strengths.first, options.strengths.last, options.strengths.step,
        options.strengths.patience}}};
  if (worded) {
    identity["texts"] = {how.wording, how.second, how.answer, options.job.pack};
  }
  return identity;
}

bool fits(const std::string& method, const CompareOptions& options) {
  if (method == kNone || method == kImitate || !output::method_of(method).same_widths) {
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
ordered_json known_cell(Column& column, const std::string& method, const fs::path& place) {
  return with_context("measuring " + place.filename().string(), [&] {
    const auto file = place.string() + ".json";
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      write_record(file, cell(column, method, place));
    }
    return read_whole(file, "remove it, and it is measured anew");
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
  std::vector<Shares> shares;
  for (const auto& setting : options.settings) {
    shares.push_back(shares_of(options, setting));
  }
  check_inputs(options, shares);
  ordered_json record = {{"kind", "compare"}, {"columns", ordered_json::array()}};
  auto notes = notes_on_shares(options, shares);
  const auto rows = rows_of(options, notes);
  require(!rows.empty(), "no method is left to compare");
  take_place(place, identity_of(options, shares), options.fresh);
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
  CellNotes said;
  const auto fill = [&](size_t which, int64_t count) {
    const auto& setting = options.settings[which];
    const auto file = [&](const char* kind) {
      return place / c10::str(kind, "-", setting.name, "-", count, ".safetensors");
    };
    Column column{
        options,
        setting,
        shares[which],
        {setting.calibration.empty() ? setting.data : setting.calibration, count, file("examples")},
        {options.familiar, count, file("familiar")}};
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].batches != count) {
        continue;
      }
      watch(done++, all, rows[i].method + " on " + setting.name);
      const auto name =
          c10::str(setting.name, "-", rows[i].method, "-", rows[i].counts ? count : 0);
      const auto found = known_cell(column, rows[i].method, place / "cells" / name);
      table[i]["cells"][setting.name] = shown(found);
      record["metric"] = found.at("metric");
      add_prompts_of(setting.name, found, record);
      for (const auto& note : found.value("notes", ordered_json::array())) {
        said[{setting.name, note.get<std::string>()}].push_back(rows[i].method);
      }
    }
    column.prepared.done();
    column.familiar.done();
  };
  for (size_t which = 0; which < options.settings.size(); ++which) {
    record["columns"].push_back(options.settings[which].name);
    for (const auto count : counts_of(options)) {
      fill(which, count);
    }
  }
  for (auto& row : table) {
    double sum = 0;
    for (const auto& cell : row.at("cells")) {
      sum += cell.at("value").get<double>();
    }
    row["mean"] = sum / static_cast<double>(row.at("cells").size());
  }
  add_cell_notes(said, rows.size(), notes);
  add_notes(record, table, notes);
  watch(all, all, "compared");
  record["higher_is_better"] = record.at("metric") != "perplexity";
  record["rows"] = table;
  record["notes"] = notes;
  write_record(place / "compare.json", record);
  return record;
}

}  // namespace theseus::evaluate
