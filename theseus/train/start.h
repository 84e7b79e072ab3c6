#pragma once

#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"
#include "theseus/train/adamw.h"

namespace theseus::train {

// Where a training begins instead of the model itself.
struct Start {
  Tensors tensors;                                  // base + alpha * update, by own names
  std::map<std::string, update::LowRank> low_rank;  // factors, by module
};

// From `path`: what 'transport --write update' wrote for this model, or a tune of it (a model or a PEFT
// adapter). With `rank` > 0 an adapter, whose factors of that rank are gone on with. Throws InputError when it
// does not belong to this model.
Start read_start(const std::string& path, double alpha, int64_t rank, model::Model& model);

}  // namespace theseus::train
