#pragma once

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"

namespace theseus::output {

// Whether a transport will work, before hours are spent on it. Aligns on the first part of the
// calibration and measures on the rest (stats::Calibration::split), so that a map which only
// remembers its rows is seen for what it is. Writes nothing that stays. The result:
//
//   kind      "diagnose"
//   verdict   works, may work, will not work, just copy (see verdict.h)
//   reasons   in words, with the numbers they rest on
//   spaces    of each space that needs a map: space, stage, before, after, centred and residual (see
//             Likeness), rank of how many, condition (where finite), and energy: the share of the
//             update's square at this space that lies in source directions which the statistics of
//             the space determine; 1 where they determine all
//   agreement before, after, gain, rows and alpha (see Agreement), at the best strength of 1, 2 and 3 or at the one that
//             was asked for; missing where outputs cannot be compared
//   distance  of the two bases (see BaseDistance)
//   aligned, held_out    sequences
//   method, notes
//
// Throws InputError as plan_job does, and when there is nothing to hold out.
nlohmann::ordered_json diagnose_job(const JobOptions& options, const transport::Watch& watch);

}  // namespace theseus::output
