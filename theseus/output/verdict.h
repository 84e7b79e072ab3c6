#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/output/agreement.h"
#include "theseus/output/base_distance.h"

namespace theseus::output {

struct Verdict {
  std::string word;                  // works, may work, will not work, just copy
  std::vector<std::string> reasons;  // the decisive one first
};

// From the rows that diagnose_job gives, of which there is at least one. An agreement that is certain decides; the
// cosines of activations do where there is none. Not `akin`: the update is hardly one of fine-tuning, and whatever carries
// it over may work at best. docs/diagnose.md says on how
// few settings the thresholds rest.
Verdict judge(
    const nlohmann::ordered_json& spaces,
    const BaseDistance& distance,
    const std::optional<Agreement>& agreement = std::nullopt,
    bool akin = true);

}  // namespace theseus::output
