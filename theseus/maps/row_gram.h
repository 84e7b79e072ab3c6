#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// X X^T [m, m] for X [m, n], exactly symmetric.
at::Tensor row_gram(const at::Tensor& rows);

// Rows that are orthonormal up to e become so up to e^2.
at::Tensor newton_schulz(const at::Tensor& rows);

}  // namespace theseus::maps
