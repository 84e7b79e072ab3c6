#pragma once

#include <optional>
#include <string>

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
  std::optional<stats::Calibration> calibration;
  std::optional<transport::SourceUpdate> update;
  std::optional<transport::Alignment> alignment;
  nlohmann::ordered_json drawn;  // what a calibration that was made from data holds; else null

  const stats::Calibration* find_calibration() const {
    return calibration ? &*calibration : nullptr;
  }
};

// The examples of a calibration that is made from data, as `options` draw them.
stats::Choice choice_of(const JobOptions& options);

// Opens everything that `options` names and checks that it belongs together. The source may come from
// the alignment. Reads headers, of the tuned model as much as it takes to see a change, and data that a
// calibration has to be made from. Throws InputError.
Opened open_all(const JobOptions& options, const transport::Watch& watch);

// Text that is equal for runs that must give the same bytes: the options, and the inputs as they are
// on disk now.
std::string identity_of(const JobOptions& options, const Opened& opened);

// How many examples take part, of how many, and the seed that drew them.
nlohmann::ordered_json describe_examples(const JobOptions& options, const Opened& opened);

// Throws InputError unless the alignment was made with these two bases; reads them.
void require_same_bases(const Opened& opened);

// Where each input lies and what is in it, by fingerprint; reads everything.
nlohmann::ordered_json describe_inputs(const JobOptions& options, const Opened& opened);

}  // namespace theseus::output
