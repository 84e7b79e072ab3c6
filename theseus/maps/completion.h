#pragma once

#include <ATen/core/Tensor.h>

// What complete.cpp and complete_factors.cpp share: the two forms must choose alike.

namespace theseus::maps {

// s^2 from which on polar(E) is taken from the formula: errors of P grow by 1 / s^2.
inline constexpr double kStrong = 0.2;
// Singular values of Y up to this leave a direction open: in float32 they have 1e-7 of noise.
inline constexpr double kOpen = 1e-3;
// Priors are float32.
inline constexpr double kPriorNoise = 1e-7;
// More random vectors than are needed.
inline constexpr int64_t kSpare = 8;

// Orthonormal columns that span what the columns of `basis` [q, k] do not: [q, q - k].
at::Tensor complement(const at::Tensor& basis);
// Orthonormal columns that span the columns of `drawn` [d, q + kSpare] as well as q can: [d, q].
at::Tensor best_spanned(const at::Tensor& drawn);

}  // namespace theseus::maps
