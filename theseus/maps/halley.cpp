// Halley's iteration with weights that change (Nakatsukasa, Bai and Gygi 2010): X_0 = C / s_1,
//
//   X <- (b / c) X + (a - b / c) (I + c X X^T)^-1 X
//
// takes every singular value x to x (a + b x^2) / (1 + c x^2). The weights are those that lift the smallest
// one, l, most; all are 1 up to rounding after four rounds at a condition of 1e7. The system is solved by
// its Cholesky factor, which costs eps c, some eps l^(-4/3): hence the limit.

#include "theseus/maps/halley.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

constexpr double kMostCondition = 1e7;
constexpr int kMostRounds = 8;
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

at::Tensor iterated(at::Tensor x, at::Tensor gram, double l) {
  for (int round = 0; round < kMostRounds && 1 - l > kConverged; ++round) {
    const HalleyWeights weights(l);
    const auto [a, b, c] = weights;
    auto system = c * (round == 0 ? gram : row_gram(x));
    system.diagonal().add_(1);
    const auto solved = at::cholesky_solve(x, at::linalg_cholesky(system));
    x = at::add(solved * (a - b / c), x, b / c);
    l = weights.lifted(l);
  }
  return newton_schulz(x);
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
  return Halley{
      .factor =
          iterated(matrix * scale, scaled, std::min(kBelowSmallest * smallest * scale, 1 - 1e-3)),
      .largest = largest,
      .smallest = smallest};
}

}  // namespace theseus::maps
