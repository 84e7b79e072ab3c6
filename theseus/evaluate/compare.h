#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/evaluate/sweep.h"
#include "theseus/output/job.h"

namespace theseus::evaluate {

// Words for methods that are no methods of maps: the target as it is, and output::imitate_job.
constexpr const char* kNone = "none";
constexpr const char* kImitate = "imitate";

// One column of the table: a fine-tune, what it was tuned for, and what the maps are made from.
struct Setting {
  std::string name;
  std::string tuned;
  std::string data;         // with a split to measure on
  std::string calibration;  // empty: `data`
};

struct CompareOptions {
  // source, target, align, norms, pack (of calibrations, and of texts whose perplexity is measured); its tuned,
  // calibration and wording are not used
  output::JobOptions job;
  // kNone, kImitate, others as output::set_method reads them
  std::vector<std::string> methods;
  std::vector<int64_t> batches;  // B-shot: one row for each; empty: as job says
  std::vector<Setting> settings;
  EvaluateOptions evaluate;                     // how; its data, split and pack are not used
  std::optional<std::string> validation, test;  // splits; none: see shares_of
  std::string familiar;                         // of imitation; empty: there is none
  Strengths strengths;
  bool fresh = false;  // replace an earlier comparison of something else
};

// For every method, number of batches and setting: the update carried, or imitated, with the same calibration, its
// strength chosen on the validation split, and the score on the test split. Inputs are checked first. Work is done in `directory`, and
// what is there already is not done again. Throws InputError.
nlohmann::ordered_json compare(
    const CompareOptions& options, const std::string& directory, const Watch& watch);

}  // namespace theseus::evaluate
