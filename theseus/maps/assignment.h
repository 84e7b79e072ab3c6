#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// The permutation that maximises sum_i score[i, column[i]], for a finite score [n, n] on the CPU;
// int64 [n]. O(n^3). Of several best ones always the same.
at::Tensor assign(const at::Tensor& score);

}  // namespace theseus::maps
