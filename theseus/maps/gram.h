#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// Eigenvalues of a Gram matrix below this share of the largest are rounding noise of the float32
// products it is summed from; its inverse and its powers are taken on the range of the others.
constexpr double kEigenvalueCut = 1e-9;

// G = V diag(values) V^T with the eigenvalues that count, largest first.
struct Spectrum {
  at::Tensor values;   // [r]
  at::Tensor vectors;  // [k, r]

  int64_t rank() const { return values.size(0); }
  double condition() const;  // largest over smallest value
  // V diag(values)^p V^T [k, k]
  at::Tensor power(double p) const;
  // (G + lambda I)^-1 on the range [k, k]
  at::Tensor ridge_inverse(double lambda) const;
};

// Of G [k, k] float64, symmetric up to rounding. Throws NumericError when it is zero, or has a
// negative eigenvalue that counts.
Spectrum spectrum(const at::Tensor& gram);

}  // namespace theseus::maps
