#pragma once

#include <ATen/core/Tensor.h>

#include "theseus/maps/method.h"

namespace theseus::maps {

// (S^T S)^-p C (R^T R)^-p on the ranges of the Grams, p = options.whiten; C itself for p = 0, which
// needs no Grams. [ks, kt].
at::Tensor whitened_cross(const Problem& problem, const Options& options);

}  // namespace theseus::maps
