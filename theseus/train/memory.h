#pragma once

#include <cstdint>

#include "theseus/gradient/labelled.h"
#include "theseus/model/model.h"

namespace theseus::train {

// What training keeps of every weight, however the base is stored: the weight in `dtype` and, where it is learnt itself, a
// float32 leaf of it, a gradient and AdamW's two moments.
int64_t bytes_a_weight(c10::ScalarType dtype, bool low_rank);

// How many sequences of a batch go through the model at a time, so that what autograd keeps of them takes
// about a gigabyte on a processor and sixteen on another device. At least 1. The same for the same batch
// on every machine.
int64_t sequences_at_a_time(
    const model::Architecture& architecture, const gradient::Labelled& batch, c10::Device device);

// `asked`, or that where it is 0.
int64_t sequences_at_a_time(
    int64_t asked, const model::Model& model, const gradient::Labelled& batch);

}  // namespace theseus::train
