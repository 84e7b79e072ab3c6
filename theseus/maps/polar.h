#pragma once

#include <cstdint>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// Singular values below this share of the largest count as zero. Moments are float64 sums of float32
// products of float32 activations, so their singular values carry noise of 1e-8 to 1e-7 of the
// largest: what is smaller says nothing, and its singular vectors are rounding errors.
constexpr double kRankTolerance = 1e-12;

// The determined part of an orthogonal polar factor, T = L R^T with r orthonormal columns each.
struct Polar {
  at::Tensor left;           // [m, r]  undefined: the identity, when r = m <= n
  at::Tensor right;          // [n, r]  undefined: the identity, when r = n < m
  int64_t rank = 0;          // r
  double condition = 0;      // largest singular value over the smallest that counts
  double orthogonality = 0;  // of R, or of L when m > n; the other is LAPACK's
  double asymmetry = 0;
  double missing = 0;  // share of the sum of singular values that tr(T^T C) misses
  std::string route;   // "eigh" or "svd"

  at::Tensor factor() const;  // [m, n]
};

// Of C [m, n] float64, finite. Singular values up to `floor` count as zero too; when all do, the
// rank is 0. Throws NumericError when no route leads to a certified answer.
Polar polar(const at::Tensor& matrix, double floor = 0);

// Likewise, by a singular value decomposition.
Polar polar_by_svd(const at::Tensor& matrix, double floor = 0);

}  // namespace theseus::maps
