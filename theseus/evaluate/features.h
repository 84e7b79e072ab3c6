#pragma once

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::evaluate {

// The vector that stands for each image or text: projected features; else the first token of an image,
// the mean of a text's tokens that are no padding. [n, d] float32 on the CPU. Throws InputError for a
// model that gives neither.
at::Tensor features_of(const model::Outputs& outputs, const model::Batch& batch);

}  // namespace theseus::evaluate
