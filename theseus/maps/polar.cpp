// The orthogonal polar factor of C [m, n], m <= n (otherwise of C^T), on what C determines:
//
//   C = U S V^T,   T = U_r V_r^T   over the r singular values s_i > tolerance s_1
//
// T is the maximiser of tr(T^T C), unique on the range. The maximum is the sum of the s_i, and C T^T is
// positive semi-definite exactly where it is reached.
//
//   C C^T = U S^2 U^T,   W = U^T C,   s_i = |W_i|,   V_i = W_i / s_i
//
// A Gram squares the condition: V_i errs by eps (s_1 / s_i)^2. So only s_i > q s_1 are taken from it.
// The rows W_2 of the others, less their part along V_1, are a smaller problem without the large values,
// computed to eps s_1: T = U_1 V_1^T + U_2 polar(W_2), and so on.

#include "theseus/maps/polar.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/halley.h"
#include "theseus/maps/halley_mixed.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

// q. What is large becomes a float32 map, for which errors of 5e-8 will do.
constexpr double kResolvedSmall = 1e-3;
constexpr double kResolvedLarge = 1e-5;
// A factor whose certificates are above these gets a Newton-Schulz step, or another route.
constexpr double kOrthogonalSmall = 1e-10;
constexpr double kOrthogonalLarge = 5e-8;
constexpr double kCertified = 1e-7;
constexpr double kCertifiedFloat = 1e-6;  // of a factor that is float32 already

// A singular value says something when it is so many times what errors change it by.
constexpr double kTimes = 4;

// C = U S V^T, largest first, without the values that count as zero.
struct Triple {
  at::Tensor u;   // [m, r]
  at::Tensor s;   // [r]
  at::Tensor vt;  // [r, n]
};

// `zero`: what counts as zero; negative: as `significance` says of the largest here.
Triple triple_by_eigh(const at::Tensor& c, const Significance& significance, double zero = -1) {
  const auto m = c.size(0);
  auto [lambda, vectors] = at::linalg_eigh(row_gram(c));
  lambda = lambda.flip(0);                      // [m], descending
  const auto u = vectors.flip(1).contiguous();  // [m, m]
  const auto w = u.t().matmul(c);               // [m, n]
  const auto s = w.norm(2, 1);                  // [m]
  const auto largest = s.max().item<double>();
  if (zero < 0) {
    zero = std::max(significance.floor, significance.share * largest);
  }
  const auto q = is_small(c) ? kResolvedSmall : kResolvedLarge;
  const auto least = std::max(q * largest, zero);
  // lambda is sorted; s of what is not resolved need not be.
  const auto resolved = (lambda > least * least).logical_and(s > zero).sum().item<int64_t>();
  if (largest <= zero || resolved == 0) {
    return {u.slice(1, 0, 0), s.slice(0, 0, 0), w.slice(0, 0, 0)};
  }
  const auto u1 = u.slice(1, 0, resolved);
  const auto s1 = s.slice(0, 0, resolved);
  const auto v1 = w.slice(0, 0, resolved) / s1.unsqueeze(1);
  if (resolved == m) {
    return {u1, s1, v1};
  }
  auto w2 = w.slice(0, resolved);
  w2 = w2 - w2.matmul(v1.t()).matmul(v1);
  if (w2.norm().item<double>() <= zero) {
    return {u1, s1, v1};
  }
  const auto rest = triple_by_eigh(w2, significance, zero);
  return {
      at::cat({u1, u.slice(1, resolved).matmul(rest.u)}, 1), at::cat({s1, rest.s}),
      at::cat({v1, rest.vt})};
}

Triple triple_by_svd(const at::Tensor& c, const Significance& significance) {
  const auto [u, s, vt] = at::linalg_svd(c, /*full_matrices=*/false);
  const auto zero = std::max(significance.floor, significance.share * s[0].item<double>());
  const auto rank = (s > zero).sum().item<int64_t>();
  return {u.slice(1, 0, rank), s.slice(0, 0, rank), vt.slice(0, 0, rank)};
}

// How far errors of S and R change each singular value u^T S R^T v: by |R^T v| times what a direction of S holds of them,
// and likewise for R. [r]
at::Tensor errors_of(const Rounding& rounding, const Triple& triple) {
  const auto length = [](const at::Tensor& rows, const at::Tensor& directions) {
    return at::linalg_vector_norm(directions.matmul(rows), 2, 1);
  };
  return at::hypot(
      length(rounding.source, triple.u.t()) * rounding.target_error,
      length(rounding.target, triple.vt) * rounding.source_error);
}

Triple selected(const Triple& triple, const at::Tensor& kept) {
  return {
      triple.u.index_select(1, kept), triple.s.index_select(0, kept),
      triple.vt.index_select(0, kept)};
}

// The values that say something, at least one.
Triple significant(Triple triple, const Significance& significance) {
  if (significance.rounding.source.defined() && triple.s.size(0) > 0) {
    const auto above = triple.s > kTimes * errors_of(significance.rounding, triple);
    const auto kept = above.nonzero().squeeze(1);
    triple = selected(triple, kept.size(0) > 0 ? kept : triple.s.argmax().unsqueeze(0));
  }
  if (triple.s.size(0) > significance.most) {  // descending but for what was hardly resolved
    triple =
        selected(triple, triple.s.argsort(0, /*descending=*/true).slice(0, 0, significance.most));
  }
  return triple;
}

Polar from_triple(
    const at::Tensor& c, Triple triple, const Significance& significance, const char* route) {
  triple = significant(std::move(triple), significance);
  Polar polar{.left = triple.u, .rank = triple.s.size(0), .route = route};
  auto vt = triple.vt;  // [r, n]
  polar.orthogonality = orthogonality(vt);
  if (polar.orthogonality > (is_small(c) ? kOrthogonalSmall : kOrthogonalLarge)) {
    vt = newton_schulz(vt);
    polar.orthogonality = orthogonality(vt);
  }
  polar.right = vt.t();
  const auto factor = polar.factor();  // [m, n]
  polar.asymmetry = asymmetry(c, factor);
  if (polar.rank == 0) {
    return polar;
  }
  const auto possible = triple.s.sum().item<double>();
  polar.missing = 1 - c.mul(factor).sum().item<double>() / possible;
  polar.condition = (triple.s.max() / triple.s.min()).item<double>();
  if (polar.rank == c.size(0)) {  // then U is square, and R = V U^T
    polar.left = at::Tensor();
    polar.right = factor.t();
  }
  return polar;
}

bool is_certified(const Polar& polar, double limit) {
  return polar.orthogonality <= limit && polar.asymmetry <= limit &&
         std::abs(polar.missing) <= limit;
}

std::optional<Polar> find_by_eigh(const at::Tensor& c, const Significance& significance) {
  try {
    const auto triple = triple_by_eigh(c, significance);
    auto polar = from_triple(c, triple, significance, "eigh");
    if (is_certified(polar, kCertified)) {
      return polar;
    }
  } catch (const c10::Error&) {  // it did not converge
    return {};
  }
  return {};
}

// Where a decomposition is slow. Of full rank, or not at all.
std::optional<Polar> find_by_halley(const at::Tensor& c, const Significance& significance) {
  const bool fast = multiplies_float64_fast(c.device());
  const bool mixed = c.size(0) > kSmall && !fast;
  const bool worthwhile = !c.device().is_cpu() || fast || mixed;
  if (!worthwhile || significance.most < c.size(0)) {
    return {};
  }
  std::optional<Halley> found;
  try {
    found = mixed ? find_polar_by_mixed_halley(c) : find_polar_by_halley(c);
  } catch (const c10::Error&) {  // a factorization within failed: a decomposition has to tell
    return {};
  }
  // No direction of S or R is longer than all of it.
  const auto& rounding = significance.rounding;
  const auto error =
      rounding.source.defined()
          ? kTimes * std::hypot(
                         rounding.source.norm().item<double>() * rounding.target_error,
                         rounding.target.norm().item<double>() * rounding.source_error)
          : 0;
  if (!found || found->smallest <=
                    std::max({significance.floor, significance.share * found->largest, error})) {
    return {};
  }
  Polar polar{
      .right = found->factor.t(),
      .rank = c.size(0),
      .condition = std::max(1.0, found->largest / found->smallest),  // both are estimates
      .orthogonality = orthogonality(found->factor),
      .asymmetry = asymmetry(c, found->factor),
      .route = mixed ? "halley-mixed" : "halley"};
  const bool holds = is_certified(polar, mixed ? kCertifiedFloat : kCertified);
  return holds ? std::optional(polar) : std::nullopt;
}

Significance transposed(Significance significance) {
  std::swap(significance.rounding.source, significance.rounding.target);
  std::swap(significance.rounding.source_error, significance.rounding.target_error);
  return significance;
}

Polar transposed(Polar polar) {
  std::swap(polar.left, polar.right);
  return polar;
}

}  // namespace

at::Tensor Polar::factor() const {
  if (!left.defined()) {
    return right.t();
  }
  return right.defined() ? left.matmul(right.t()) : left;
}

Polar polar_by_svd(const at::Tensor& matrix, const Significance& significance) {
  if (matrix.size(0) > matrix.size(1)) {
    return transposed(polar_by_svd(matrix.t(), transposed(significance)));
  }
  const auto triple = triple_by_svd(matrix, significance);
  auto polar = from_triple(matrix, triple, significance, "svd");
  require<NumericError>(
      is_certified(polar, kCertified), "the singular value decomposition of a ", matrix.sizes(),
      " matrix does not hold: orthogonality ", polar.orthogonality, ", asymmetry ", polar.asymmetry,
      ", missing trace ", polar.missing);
  return polar;
}

Polar polar(const at::Tensor& matrix, const Significance& significance) {
  if (matrix.size(0) > matrix.size(1)) {
    return transposed(polar(matrix.t(), transposed(significance)));
  }
  if (auto found = find_by_halley(matrix, significance)) {
    return *std::move(found);
  }
  if (auto found = find_by_eigh(matrix, significance)) {
    return *std::move(found);
  }
  return polar_by_svd(matrix, significance);
}

}  // namespace theseus::maps
