#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// X X^T [m, m] for X [m, n], exactly symmetric.
at::Tensor row_gram(const at::Tensor& rows);

// A B^T [m, m] of A and B [m, n] for which it is symmetric, as X X^T is: half the work.
at::Tensor symmetric_product(const at::Tensor& left, const at::Tensor& right);

// Rows that are orthonormal up to e become so up to e^2.
at::Tensor newton_schulz(const at::Tensor& rows);

}  // namespace theseus::maps
