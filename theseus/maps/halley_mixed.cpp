// Halley's iteration (halley.cpp) for processors on which float32 is twice as fast as float64.
//
// Activations are not centred, so a few singular values stand far above the others. These are found by
// subspace iteration and set to the next one: the factor stays the same, and errors are relative to what is left.
//
// The first round lifts the smallest value most, from l to some l^(1/3), and the rounding of what it is
// computed from as much. So its system (I + c X X^T) is float64, and so is the first of the two triangular
// solves; the second one's solution is of the size that the result has. After it float32 will do: values are above 0.1.
//
// From 0.9 on the rest is a series, X X^T = I + E:
//
//   T = (I + E)^(-1/2) X,   (1 + e)^(-1/2) = 1 - e/2 + e^2 (3/8 - 5/16 e + 35/128 e^2) - ...

#include "theseus/maps/halley_mixed.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

constexpr double kMostConditionMixed = 1e4;
// Of values that stand out: this many times the next.
constexpr double kGap = 3;
constexpr int64_t kFew = 6;
// |E| from which on the series ends with an error of 2e-7, and with one of its terms.
constexpr double kSeries = 0.06;
constexpr double kOneTerm = 5e-4;

// X = C / s with the values that stand out, and s the largest of the others: all are below 1.
struct Levelled {
  at::Tensor x;        // [m, n]
  double scale = 0;    // 1 / s, or 0 when there is nothing
  double largest = 0;  // of C
};

Levelled levelled(const at::Tensor& matrix) {
  constexpr int kRounds = 7;
  constexpr double kConverged = 1e-8;  // what a wrong direction leaves behind
  const auto image = [&](const at::Tensor& q) {
    return times_few(matrix, times_few(matrix.t(), q));
  };
  auto q = fixed_gaussian(matrix.size(0), kFew, matrix.options());
  for (int i = 0; i < kRounds; ++i) {
    q = std::get<0>(at::linalg_qr(image(q)));
  }
  const auto last = image(q);
  const auto [lambda, w] = at::linalg_eigh(q.t().matmul(last));
  const auto u = q.matmul(w);  // [m, k], the largest last
  const auto values = lambda.clamp_min(0).sqrt();
  const auto errors = (last.matmul(w) - u * lambda).norm(2, 0) / values;
  const auto known = at::stack({values, errors}).cpu();
  const auto* s = known.data_ptr<double>();
  const auto* error = s + kFew;
  int64_t rest = kFew;
  for (int64_t i = kFew - 1; i > 0 && error[i] <= kConverged * s[i - 1]; --i) {
    rest = s[i] > kGap * s[i - 1] ? i : rest;
  }
  if (!(s[rest - 1] > 0)) {
    return {};
  }
  const auto scale = 1 / (kAboveLargest * s[rest - 1]);
  const auto out = u.slice(1, rest);
  const auto raised = out * (1 / values.slice(0, rest) - scale);  // s becomes 1 / scale
  return {(matrix * scale).addmm_(raised, out.t().matmul(matrix)), scale, s[kFew - 1]};
}

// For some columns at a time, which saves memory.
at::Tensor first_round(
    const at::Tensor& x, const at::Tensor& factor, const HalleyWeights& weights) {
  constexpr int64_t kColumns = 1024;
  const auto [a, b, c] = weights;
  const auto narrow = factor.to(at::kFloat);
  auto result = at::empty(x.sizes(), x.options().dtype(at::kFloat));
  for (int64_t column = 0; column < x.size(1); column += kColumns) {
    const auto some = x.narrow(1, column, std::min(kColumns, x.size(1) - column));
    const auto half = at::linalg_solve_triangular(factor, some, /*upper=*/false).to(at::kFloat);
    auto solved = at::linalg_solve_triangular(narrow.t(), half, /*upper=*/true);
    result.narrow(1, column, some.size(1))
        .copy_(solved.mul_(a - b / c).add_(some.to(at::kFloat), b / c));
  }
  return result;
}

// |E| once the values from l to 1 are scaled to lie about 1.
double spread_of(double l) {
  return (1 - l * l) / (1 + l * l);
}

// Undefined when float32 does not hold it after all.
at::Tensor finished(at::Tensor x, double l) {
  while (spread_of(l) > kSeries) {
    const HalleyWeights weights(l);
    const auto [a, b, c] = weights;
    auto system = row_gram(x).mul_(c);
    system.diagonal().add_(1);
    const auto [factor, failed] = at::linalg_cholesky_ex(system);
    if (failed.item<int>() != 0) {
      return {};
    }
    const auto solved = at::cholesky_solve(x, factor);
    x.mul_(b / c).add_(solved, a - b / c);
    l = weights.lifted(l);
  }
  x.mul_(std::sqrt(2 / (1 + l * l)));
  auto e = row_gram(x);
  e.diagonal().sub_(1);
  if (spread_of(l) <= kOneTerm) {
    return x.clone().addmm_(e, x, 1, -0.5);
  }
  const auto e2 = row_gram(e);
  auto inner = (e2 * (35.0 / 128)).sub_(e, 5.0 / 16);
  inner.diagonal().add_(3.0 / 8);
  const auto series = symmetric_product(e2, inner).sub_(e, 0.5);
  return x.clone().addmm_(series, x);
}

// Whether T^T z and C^T z agree. A direction that rounding had turned round would be one in which C is small,
// and orthogonality and symmetry would not show it.
bool arrive(const at::Tensor& matrix, const at::Tensor& factor, const at::Tensor& directions) {
  const auto there = times_few(matrix.t(), directions);  // [n, 4]
  const auto here = times_few(factor.t(), directions.to(at::kFloat)).to(at::kDouble);
  return ((there * here).sum(0) > 0.5 * there.norm(2, 0) * here.norm(2, 0)).all().item<bool>();
}

}  // namespace

std::optional<Halley> find_polar_by_mixed_halley(const at::Tensor& matrix) {
  if (matrix.size(0) <= kFew) {
    return {};
  }
  const auto [x, scale, largest] = levelled(matrix);
  if (scale == 0) {
    return {};
  }
  auto gram = row_gram(x);
  Smallest smallest;
  {
    const auto [factor, failed] = at::linalg_cholesky_ex(gram);
    if (failed.item<int>() != 0) {
      return {};
    }
    smallest = smallest_of(gram, factor);
  }
  if (!(smallest.value * kMostConditionMixed > 1)) {
    return {};
  }
  const auto l = std::min(kBelowSmallest * smallest.value, 1 - 1e-3);
  const HalleyWeights weights(l);
  gram.mul_(weights.c).diagonal().add_(1);
  gram = at::linalg_cholesky(gram);
  auto lifted = first_round(x, gram, weights);
  gram = at::Tensor();
  const auto factor = finished(std::move(lifted), weights.lifted(l));
  if (!factor.defined() || !arrive(x, factor, smallest.directions)) {
    return {};
  }
  return Halley{.factor = factor, .largest = largest, .smallest = smallest.value / scale};
}

}  // namespace theseus::maps
