#pragma once

#include <string>
#include <vector>

#include "theseus/output/opened.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// As asked, or kNormal for a method that is nothing without a mask.
gradient::Mask mask_of(const JobOptions& options);

// Whether the job learns from labels: the method does, or it masks.
bool needs_labels(const JobOptions& options);
// Throws InputError when it does and options.labels does not say that it may, or there is no calibration.
void require_labels_allowed(const JobOptions& options);

// Throws InputError when what learning from labels holds at once is more than options.align.memory, or than
// is free where that says nothing.
void require_memory_for_labels(
    const JobOptions& options,
    const Opened& opened,
    const std::vector<transport::Disposition>& plan);

// What learning from labels takes, a line each; nothing for a job that does not.
std::vector<std::string> notes_on_labels(
    const JobOptions& options,
    const Opened& opened,
    const std::vector<transport::Disposition>& plan);

// Of a method that aligns by gradients: what they did not reach, by the rows of theseus.json.
std::vector<std::string> notes_on_gradients(
    const JobOptions& options, const Opened& opened, const nlohmann::ordered_json& spaces);

}  // namespace theseus::output
