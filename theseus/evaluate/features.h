#pragma once

#include <string>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::evaluate {

// The vector that stands for each image or text: projected features; else the first token of an image,
// the mean of a text's tokens that are no padding. [n, d] float32 on the CPU. Throws InputError for a
// model that gives neither.
at::Tensor features_of(const model::Outputs& outputs, const model::Batch& batch);

// The space in which these vectors live: the joint one of images and texts, else what the last norm of
// the tower that reads the inputs writes.
std::string feature_space(const model::Architecture& architecture);

}  // namespace theseus::evaluate
