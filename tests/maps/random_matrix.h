#pragma once

#include <cmath>
#include <cstdint>

#include <ATen/ATen.h>

namespace theseus::tests {

inline at::Tensor gaussian(int64_t rows, int64_t columns, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({rows, columns}, at::kDouble);
}

// Orthonormal columns [rows, columns].
inline at::Tensor orthonormal(int64_t rows, int64_t columns, uint64_t seed) {
  return std::get<0>(at::linalg_qr(gaussian(rows, columns, seed)));
}

// U diag(s) V^T with its polar factor U V^T.
struct Planted {
  at::Tensor matrix;  // [m, n]
  at::Tensor factor;  // [m, n]
};

// Singular values from 1 down to 1 / condition, evenly in the logarithm.
inline Planted planted(int64_t m, int64_t n, double condition, uint64_t seed) {
  const auto k = std::min(m, n);
  const auto u = orthonormal(m, k, seed);
  const auto v = orthonormal(n, k, seed + 1);
  const auto s = at::logspace(0, -std::log10(condition), k, 10.0, at::kDouble);
  return {(u * s).matmul(v.t()), u.matmul(v.t())};
}

inline double distance(const at::Tensor& one, const at::Tensor& other) {
  return (one.to(at::kDouble) - other.to(at::kDouble)).abs().max().item<double>();
}

}  // namespace theseus::tests
