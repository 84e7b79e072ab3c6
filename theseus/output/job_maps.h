#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "theseus/base/side_by_side.h"
#include "theseus/output/job.h"
#include "theseus/output/opened.h"
#include "theseus/output/sign_mask.h"
#include "theseus/transport/aligner.h"

namespace theseus::output {

// How a job comes by its maps: from an alignment, or by making them. What goes through them may be masked.
struct Maps {
  std::optional<transport::Aligner> aligner;
  stats::Route route;
  std::set<std::string> towers;
  const maps::Method* method = nullptr;
  std::optional<SignMask> mask;
};

// `work`: where an interrupted job keeps what it found; empty: nowhere.
Maps find_maps(
    const JobOptions& options,
    Opened& opened,
    const std::filesystem::path& work,
    const transport::Watch& watch);

// The method of the alignment, or the one that is asked for, with its options: see set_method.
std::string method_word(const JobOptions& options, const Opened& opened);

// Gets a GPU ready for solving while files are opened; does nothing where no maps are made there.
std::unique_ptr<Aside> warming(const JobOptions& options);

// Where a walk goes on, for whoever waits.
std::string stage_words(int64_t first, const transport::Aligner& aligner);

// What calibration runs through the models in: "float32", "tf32", "bfloat16" or "float16".
std::string dtype_word(const model::Placement& placement);

// What is free now may not be free after an interruption, and the order of the work follows from it:
// the first process decides. Of several at once each may take what the one with least has.
void fix_memory(JobOptions& options, const std::filesystem::path& work);

// Runs the aligner, unless an earlier process came to its end.
void run_once(
    transport::Aligner& aligner,
    const transport::SpaceSet& needed,
    const std::filesystem::path& work,
    const transport::Sink& sink,
    const transport::Watch& watch,
    double save_every);

}  // namespace theseus::output
