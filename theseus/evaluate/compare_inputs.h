#pragma once

#include <string>
#include <vector>

#include "theseus/evaluate/compare.h"

namespace theseus::evaluate {

// Which examples of a setting are for what, as splits that data::open_examples takes.
struct Shares {
  std::string calibration, validation, test;
  std::string note;  // what was divided here, in words; empty: nothing
};

// Splits that were named are taken; the others are the data's own. Where there is no val split to choose a strength
// on, or no test split, part of what there is is held out: never examples that the maps are made from.
Shares shares_of(const CompareOptions& options, const Setting& setting);

// How a split of the setting's data is measured.
EvaluateOptions measured_on(
    const CompareOptions& options, const Setting& setting, const std::string& split);

// Whether every method is kNone, so that nothing is carried.
bool all_none(const CompareOptions& options);

// Whether strengths are searched at all.
bool chooses(const CompareOptions& options);

// Whether a method looks at examples at all, or the match of its blocks does.
bool uses_calibration(const CompareOptions& options, const std::string& method);

// Numbers of batches that rows are made for; 0: as the job says.
std::vector<int64_t> counts_of(const CompareOptions& options);

// A line on what scores and strengths rest on, or one for each setting where they differ, and what was divided.
std::vector<std::string> notes_on_shares(
    const CompareOptions& options, const std::vector<Shares>& shares);

}  // namespace theseus::evaluate
