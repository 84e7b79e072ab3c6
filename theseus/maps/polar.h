#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// C = S R^T of rows that are known with errors, which are independent of each other: one direction of S holds
// `source_error` of them, one of R `target_error` (norms over the rows).
struct Rounding {
  at::Tensor source;  // S [m, rows] float64; undefined: nothing is known about errors
  at::Tensor target;  // R [n, rows]
  double source_error = 0;
  double target_error = 0;
};

// Which singular values say something: those above `share` of the largest, above `floor` and above what `rounding`
// leaves of their directions, and of these at most the `most` largest.
struct Significance {
  double share = 1e-12;
  double floor = 0;
  int64_t most = std::numeric_limits<int64_t>::max();
  Rounding rounding = {};
};

// The determined part of an orthogonal polar factor, T = L R^T with r orthonormal columns each. Float64; float32
// by "halley-mixed".
struct Polar {
  at::Tensor left;           // [m, r]  undefined: the identity, when r = m <= n
  at::Tensor right;          // [n, r]  undefined: the identity, when r = n < m
  int64_t rank = 0;          // r
  double condition = 0;      // largest singular value over the smallest that counts
  double orthogonality = 0;  // of R, or of L when m > n; the other is LAPACK's
  double asymmetry = 0;
  double missing = 0;  // share of the sum of singular values that tr(T^T C) misses
  // "eigh", "halley" (on a GPU), "halley-mixed" (large, where float64 is slow) or "svd"
  std::string route;

  at::Tensor factor() const;  // [m, n]
};

// Of C [m, n] float64, finite. Values that do not count are zeros; when all are, the rank is 0. Throws
// NumericError when no route leads to a certified answer.
Polar polar(const at::Tensor& matrix, const Significance& significance = {});

// Likewise, by a singular value decomposition.
Polar polar_by_svd(const at::Tensor& matrix, const Significance& significance = {});

}  // namespace theseus::maps
