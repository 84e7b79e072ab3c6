#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::update {

// The Frobenius norm, summed in float64. Large tensors are taken some elements at a time: in float64 they
// would be several times as large.
double norm_of(const at::Tensor& tensor);

}  // namespace theseus::update
