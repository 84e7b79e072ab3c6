// The polar factor of C [m, n], m <= n, by two rational functions (Nakatsukasa and Freund 2016):
//
//   C = U S V^T,  0 < l <= S <= 1,   Z_1(S) in [l_1, 1],  Z_2(Z_1(S)) in [1 - 1e-7, 1]
//   X = U Z(S) V^T = scale (I + sum_j weight_j (C C^T + shift_j I)^-1) C
//
// so Z_2(Z_1(C)) is U V^T. Each term is a Cholesky factorisation and an inverse, which together cost a
// tenth of an eigendecomposition. Z_1 works on C C^T and its square of the condition in float64; l_1
// is near 1, so float32 does for Z_2.
//
// Zolotarev: with c_i = l^2 tn(i K / (2 r + 1))^2, i = 1 .. 2 r, in elliptic functions of modulus
// sqrt(1 - l^2),  shift_j = c_{2j-1},  weight_j = prod_k (c_2k - c_{2j-1}) / prod_{k != j} (c_{2k-1} - c_{2j-1}).
// All weights are positive, so X is a positive definite matrix times C, and so is the result.
// Two functions of r_1 and r_2 terms are one of degree N = (2 r_1 + 1)(2 r_2 + 1), and
// 1 - reached = 8 exp(-N pi^2 / (2 log(4 / l))).

#include "theseus/maps/rational.h"

#include <cmath>
#include <numbers>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

// Beyond this, errors of C C^T show in the map: eps times its square.
constexpr double kWorstCondition = 1e6;
// 1 - reached of the second function.
constexpr double kConverged = 1e-7;
// Estimates of extreme singular values are not quite extreme.
constexpr double kMargin = 1.05;

// The amplitude of u = share K for the modulus sqrt(1 - l^2), by arithmetic-geometric means.
double amplitude(double l, double share) {
  std::vector<double> ratios;
  double a = 1;
  double b = l;
  while (a - b > 1e-15 * a) {
    const double half_gap = (a - b) / 2;
    const double next = (a + b) / 2;
    b = std::sqrt(a * b);
    a = next;
    ratios.push_back(half_gap / a);
  }
  // u a 2^n with K = pi / (2 a)
  double phi = std::ldexp(share * std::numbers::pi / 2, static_cast<int>(ratios.size()));
  while (!ratios.empty()) {
    phi = (phi + std::asin(ratios.back() * std::sin(phi))) / 2;
    ratios.pop_back();
  }
  return phi;
}

// The fewest terms of the two functions together that converge from l on; the first ones cost more.
std::pair<int64_t, int64_t> terms_from(double l) {
  const double degree =
      std::log(8 / kConverged) * 2 * std::log(4 / l) / (std::numbers::pi * std::numbers::pi);
  for (int64_t first = 1;; ++first) {
    for (const int64_t second : {first, first + 1}) {
      if (static_cast<double>((2 * first + 1) * (2 * second + 1)) >= degree) {
        return {first, second};
      }
    }
  }
}

// Lower Cholesky factor; nothing when there is none.
std::optional<at::Tensor> find_cholesky(const at::Tensor& gram) {
  const auto [factor, info] = at::linalg_cholesky_ex(gram);
  return info.item<int64_t>() == 0 ? std::optional(factor) : std::nullopt;
}

// Z(X), where gram = X X^T.
std::optional<at::Tensor> find_applied(
    const Zolotarev& z, const at::Tensor& gram, const at::Tensor& x) {
  at::Tensor sum;  // [m, m]
  for (size_t j = 0; j < z.shifts.size(); ++j) {
    auto shifted = gram.clone();
    shifted.diagonal().add_(z.shifts[j]);
    const auto factor = find_cholesky(shifted);
    if (!factor) {
      return {};
    }
    const auto term = at::cholesky_inverse(*factor).mul_(z.weights[j]);
    sum = sum.defined() ? sum.add_(term) : term;
  }
  // The mean of the diagonal is applied by itself: the product rounds by the size of what is left.
  const auto mean = sum.diagonal().mean().item<double>();
  sum.diagonal().sub_(mean);
  return (x * (z.scale * (1 + mean))).addmm_(sum, x, 1, z.scale);
}

// The largest eigenvalue of what `apply` multiplies by, from a few products.
template <class Apply>
double largest_eigenvalue(at::Tensor z, int steps, Apply&& apply) {
  double value = 0;
  for (int step = 0; step < steps; ++step) {
    z = apply(std::get<0>(at::linalg_qr(z)));
    value = z.norm(2, 0).max().template item<double>();
  }
  return value;
}

}  // namespace

double Zolotarev::operator()(double x) const {
  double sum = 1;
  for (size_t j = 0; j < shifts.size(); ++j) {
    sum += weights[j] / (x * x + shifts[j]);
  }
  return scale * x * sum;
}

Zolotarev zolotarev(double least, int64_t terms) {
  const auto c = [&](int64_t i) {
    const auto share = static_cast<double>(i) / static_cast<double>(2 * terms + 1);
    return std::pow(least * std::tan(amplitude(least, share)), 2);
  };
  Zolotarev z;
  for (int64_t j = 1; j <= terms; ++j) {
    const double shift = c(2 * j - 1);
    double weight = 1;
    for (int64_t k = 1; k <= terms; ++k) {
      weight *= c(2 * k) - shift;
      weight /= k == j ? 1 : c(2 * k - 1) - shift;
    }
    z.shifts.push_back(shift);
    z.weights.push_back(weight);
  }
  z.scale = 1 / z(1);
  z.reached = z(least);
  return z;
}

std::optional<RationalPolar> find_polar_by_rational(const at::Tensor& matrix) {
  auto gram = row_gram(matrix);  // [m, m]
  const auto z = fixed_gaussian(matrix.size(0), 8, matrix.options());
  const auto largest =
      kMargin * largest_eigenvalue(z, 8, [&](const at::Tensor& q) { return gram.matmul(q); });
  gram.div_(largest);
  const auto factor = find_cholesky(gram);
  if (!factor) {
    return {};
  }
  const auto least = 1 / largest_eigenvalue(z, 4, [&](const at::Tensor& q) {
                       return at::cholesky_solve(q, *factor);
                     });
  const auto condition = 1 / std::sqrt(kMargin * least);
  if (!(condition <= kWorstCondition)) {
    return {};
  }
  const auto l = std::sqrt(least) / kMargin;
  const auto [first, second] = terms_from(l);
  const auto z1 = zolotarev(l, first);
  const auto x1 = find_applied(z1, gram, matrix / std::sqrt(largest));
  if (!x1) {
    return {};
  }
  const auto x = x1->to(at::kFloat);  // [m, n]
  const auto x2 = find_applied(zolotarev(z1.reached / kMargin, second), row_gram(x), x);
  return x2 ? std::optional(RationalPolar{*x2, condition}) : std::nullopt;
}

}  // namespace theseus::maps
