#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"
#include "theseus/stats/calibration.h"
#include "theseus/stats/prepare.h"
#include "theseus/transport/alignment.h"
#include "theseus/transport/source_update.h"

namespace theseus::output {

// What a job reads.
struct Opened {
  model::Model source;
  model::Model target;
  std::optional<stats::Calibration> calibration, labelled;
  std::optional<transport::SourceUpdate> update;
  std::optional<transport::Alignment> alignment;
  // What a calibration that was made from data holds, and what the labelled examples; else null.
  nlohmann::ordered_json drawn, labelled_drawn;

  const stats::Calibration* find_calibration() const {
    return calibration ? &*calibration : nullptr;
  }
  // What labels are taken from, where the job learns from some.
  const stats::Calibration* find_labelled() const {
    return labelled ? &*labelled : find_calibration();
  }
};

// The examples of a calibration that is made from data, as `options` draw them.
stats::Choice choice_of(const JobOptions& options);

// Opens everything that `options` names and checks that it belongs together. The source may come from
// the alignment. Reads headers, of the tuned model as much as it takes to see a change, and data that a
// calibration has to be made from. Throws InputError.
Opened open_all(const JobOptions& options, const transport::Watch& watch);

// See Identity: the options that decide the result, and the hashes of the inputs. Reads everything.
nlohmann::ordered_json identity_of(const JobOptions& options, const Opened& opened);

// Of what a model's or an adapter's directory says beside its weights: configs, a tokenizer, and a head.
std::string hash_of_side_files(const std::filesystem::path& directory);
// Of files by their contents and their names, from `directory` on.
std::string hash_of_files(
    const std::filesystem::path& directory, std::vector<std::filesystem::path> files);

// How many examples take part, of how many, and the seed that drew them.
nlohmann::ordered_json describe_examples(const JobOptions& options, const Opened& opened);

// Throws InputError unless the alignment was made with these two bases; reads them.
void require_same_bases(const Opened& opened);

// Where each input lies and what is in it, by fingerprint; reads everything.
nlohmann::ordered_json describe_inputs(const JobOptions& options, const Opened& opened);

}  // namespace theseus::output
