#pragma once

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"

namespace theseus::output {

// A job of several processes is that of the first one, which alone reads the update and writes. This is
// what the others do meanwhile: their share of the batches and of the maps.
void follow_job(const JobOptions& options, const transport::Watch& watch);

// Whether the first process found the job's finished output; what the others say in `found` does not matter.
bool is_finished(const JobOptions& options, bool found);

// Throws InputError for what several processes do not share out.
void require_shared(const JobOptions& options);

// How many there were, where it is more than one: the last bits of sums depend on it.
void add_processes(const JobOptions& options, nlohmann::ordered_json& record);

}  // namespace theseus::output
