// Halley's iteration with weights that change (Nakatsukasa, Bai and Gygi 2010): X_0 = C / s_1,
//
//   X <- (b / c) X + (a - b / c) (I + c X X^T)^-1 X
//
// takes every singular value x to x (a + b x^2) / (1 + c x^2). The weights are those that lift the smallest
// one, l, most. The system is solved by its Cholesky factor, which costs eps c, some eps l^(-4/3): hence the limit.
//
// Newton's and Schulz's with a scale (Chen and Chow 2014) is products alone,
//
//   X <- a (3 X - a^2 X X^T X) / 2,   a^2 = 3 / (1 + l + l^2)
//
// and takes [l, 1] into [l', 1] with l' up to 2.6 l. As it would take both l and 1 to l', where small values are rounded, a is
// kept a little smaller. A GPU multiplies so much faster than it factors that small matrices
// are lifted by this alone, from an l that leaves nothing out, and large ones after a first round of Halley's.
//
// The maximum of tr(T^T C) is reached where H = C T^T is positive definite. Its eigenvalues are the singular values of C.

#include "theseus/maps/halley.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

constexpr double kMostCondition = 1e7;
constexpr double kMostConditionSmall = 1e10;
constexpr double kLow = 0.05;        // up to here a round of Halley's is worth its factor
constexpr double kMostScale = 1.65;  // 1 goes to 0.23
constexpr double kConverged = 1e-7;  // and one step of Newton and Schulz

double largest_of(const at::Tensor& gram) {
  constexpr int kRounds = 12;
  auto v = fixed_gaussian(gram.size(0), 4, gram.options());
  for (int i = 0; i < kRounds; ++i) {
    v = gram.matmul(v);
    v = v / v.norm(2, /*dim=*/0);
  }
  return std::sqrt(gram.matmul(v).norm(2, 0).max().item<double>());
}

// By products alone, for values from l to 1.
at::Tensor lifted(at::Tensor x, double l) {
  while (1 - l > kConverged) {
    const auto a = std::min(kMostScale, std::sqrt(3 / (1 + l + l * l)));
    const auto half = 0.5 * a * a * a;
    x = at::addmm(x, row_gram(x), x, /*beta=*/1.5 * a, /*alpha=*/-half);
    l *= 1.5 * a - half * l * l;
  }
  return newton_schulz(x);
}

at::Tensor iterated(at::Tensor x, const at::Tensor& gram, double l) {
  if (l < kLow) {
    const HalleyWeights weights(l);
    const auto [a, b, c] = weights;
    auto system = c * gram;
    system.diagonal().add_(1);
    const auto solved = at::cholesky_solve(x, at::linalg_cholesky(system));
    x = at::add(solved * (a - b / c), x, b / c);
    l = weights.lifted(l);
  }
  return lifted(x, l);
}

// The Cholesky factor of C T^T; undefined: it is not positive definite.
at::Tensor factor_of_h(const at::Tensor& matrix, const at::Tensor& map) {
  const auto h = matrix.matmul(map.t());
  const auto [factor, failed] = at::linalg_cholesky_ex((h + h.t()) / 2);
  return failed.item<int>() == 0 ? factor : at::Tensor();
}

// The smallest value of H = L L^T, by products with its inverse.
double smallest_of_h(const at::Tensor& factor) {
  constexpr int kRounds = 8;
  const auto one = at::eye(factor.size(0), factor.options());
  const auto inverse = at::linalg_solve_triangular(factor, one, /*upper=*/false);
  auto v = fixed_gaussian(factor.size(0), 4, factor.options());
  at::Tensor size;
  for (int i = 0; i < kRounds; ++i) {
    v = inverse.t().matmul(inverse.matmul(v));
    size = v.norm(2, /*dim=*/0);
    v = v / size;
  }
  return 1 / size.max().item<double>();
}

std::optional<Halley> find_small(const at::Tensor& matrix, double largest) {
  const auto x = matrix / (kAboveLargest * largest);
  Halley found{.factor = lifted(x, kBelowSmallest / kMostConditionSmall), .largest = largest};
  const auto factor = factor_of_h(matrix, found.factor);
  if (!factor.defined()) {
    return {};
  }
  found.smallest = smallest_of_h(factor);
  return found.smallest * kMostConditionSmall > largest ? std::optional(found) : std::nullopt;
}

}  // namespace

HalleyWeights::HalleyWeights(double l) {
  const auto l2 = l * l;
  const auto d = std::cbrt(4 * (1 - l2) / (l2 * l2));
  const auto root = std::sqrt(1 + d);
  a = root + 0.5 * std::sqrt(8 - 4 * d + 8 * (2 - l2) / (l2 * root));
  b = (a - 1) * (a - 1) / 4;
  c = a + b - 1;
}

Smallest smallest_of(const at::Tensor& gram, const at::Tensor& factor) {
  constexpr int kRounds = 3;
  auto v = fixed_gaussian(gram.size(0), 4, gram.options());
  for (int i = 0; i < kRounds; ++i) {
    v = at::cholesky_solve(v, factor);
    v = v / v.norm(2, /*dim=*/0);
  }
  return {v, 1 / std::sqrt(at::cholesky_solve(v, factor).norm(2, 0).max().item<double>())};
}

std::optional<Halley> find_polar_by_halley(const at::Tensor& matrix) {
  const auto gram = row_gram(matrix);
  const auto largest = largest_of(gram);
  if (!(largest > 0)) {
    return {};
  }
  if (matrix.size(0) <= kSmall && multiplies_float64_fast(matrix.device())) {
    return find_small(matrix, largest);
  }
  const auto scale = 1 / (kAboveLargest * largest);
  const auto scaled = gram * (scale * scale);
  const auto [factor, failed] = at::linalg_cholesky_ex(scaled);
  if (failed.item<int>() != 0) {
    return {};
  }
  const auto smallest = smallest_of(scaled, factor).value / scale;
  if (!(smallest * kMostCondition > largest)) {
    return {};
  }
  const auto l = std::min(kBelowSmallest * smallest * scale, 1 - 1e-3);
  Halley found{iterated(matrix * scale, scaled, l), largest, smallest};
  return factor_of_h(matrix, found.factor).defined() ? std::optional(found) : std::nullopt;
}

}  // namespace theseus::maps
