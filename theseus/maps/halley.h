#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// The polar factor of C [m, n] float64, m <= n, of full rank.
struct Halley {
  at::Tensor factor;   // [m, n]
  double largest = 0;  // singular values of C, estimated to a few percent
  double smallest = 0;
};

// Nothing where C is too ill-conditioned for it (from 1e7 on) or of lower rank: a decomposition has to tell.
// Only products, Cholesky factors and solves with them: on a GPU several times faster than one.
std::optional<Halley> find_polar_by_halley(const at::Tensor& matrix);

}  // namespace theseus::maps
