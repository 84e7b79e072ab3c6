#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "theseus/gradient/trainable.h"

namespace theseus::train {

// Factors for linear layers as PEFT begins them: A uniform within 1 / sqrt(in), B zero, so that the first
// pass is the base's. `alpha` / rank scales their product. `start` has those that are gone on with.
void begin_lora(
    const std::vector<std::string>& modules,
    int64_t rank,
    double alpha,
    uint64_t seed,
    const std::map<std::string, update::LowRank>& start,
    gradient::Trainable& trainable);

}  // namespace theseus::train
