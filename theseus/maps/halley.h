#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// The polar factor of C [m, n] float64, m <= n, of full rank.
struct Halley {
  at::Tensor factor;   // [m, n]
  double largest = 0;  // singular values of C, estimated to some percent
  double smallest = 0;
};

// Nothing where C is too ill-conditioned for it (from 1e7 on, when small from 1e10) or of lower rank: a decomposition
// has to tell. Products, and a few Cholesky factors: on a GPU several times faster than one.
std::optional<Halley> find_polar_by_halley(const at::Tensor& matrix);

// What the iteration is made of.

// The weights that lift the smallest value l of (0, 1] most.
struct HalleyWeights {
  double a, b, c;
  explicit HalleyWeights(double l);
  double lifted(double x) const { return x * (a + b * x * x) / (1 + c * x * x); }
};

// The directions of a matrix in which it is smallest, nearly, given X X^T and its Cholesky factor.
struct Smallest {
  at::Tensor directions;  // [m, 4]
  double value = 0;       // of X
};
Smallest smallest_of(const at::Tensor& gram, const at::Tensor& factor);

// What is known of the extreme values is known from inside.
inline constexpr double kAboveLargest = 1.1;
inline constexpr double kBelowSmallest = 0.7;

}  // namespace theseus::maps
