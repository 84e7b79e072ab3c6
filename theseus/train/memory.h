#pragma once

#include <cstdint>

#include "theseus/gradient/labelled.h"

namespace theseus::train {

// How many sequences of a batch go through the model at a time, so that what autograd keeps of them takes
// about a gigabyte on a processor and sixteen on another device. At least 1. The same for the same batch
// on every machine.
int64_t sequences_at_a_time(
    const model::Architecture& architecture, const gradient::Labelled& batch, c10::Device device);

}  // namespace theseus::train
