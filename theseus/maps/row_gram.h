#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// X X^T [m, m] for X [m, n], exactly symmetric.
at::Tensor row_gram(const at::Tensor& rows);

// A B^T [m, m] of A and B [m, n] for which it is symmetric, as X X^T is: half the work.
at::Tensor symmetric_product(const at::Tensor& left, const at::Tensor& right);

// A X [m, k] for X [n, k] of a few columns. These on the left: BLAS would first rearrange the whole of A.
at::Tensor times_few(const at::Tensor& matrix, const at::Tensor& columns);

// Rows that are orthonormal up to e become so up to e^2.
at::Tensor newton_schulz(const at::Tensor& rows);

}  // namespace theseus::maps
