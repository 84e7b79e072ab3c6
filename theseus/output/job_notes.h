#pragma once

#include <string>
#include <vector>

#include "theseus/output/job_maps.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// What the examples of a calibration are, and are not: fewer than asked for, left out, cut, classes paired by number.
std::vector<std::string> notes_on_examples(const Opened& opened);

// What a reader should know before the work begins, the examples among it. `write`: as write_word says.
std::vector<std::string> notes_before(
    const JobOptions& options,
    const Opened& opened,
    const Maps& maps,
    const std::vector<transport::Disposition>& plan,
    const std::string& write);

// Of them, what the schedule decides.
std::vector<std::string> notes_on_schedule(
    const JobOptions& options, const Opened& opened, const transport::Schedule& schedule);

}  // namespace theseus::output
