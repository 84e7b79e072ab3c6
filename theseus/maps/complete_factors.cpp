// The equations of complete.cpp with the isometry P = B + L_0 R_0^T kept as factors. Every term that is
// added to P has the columns of L or of F on its left, so with ds <= dt
//
//   T = B + [L_0, L, F] [R_0, R - P^T L, G]^T,   G = (core F^T E - R^T)^T + what fills the weak directions
//
// and P and T are only ever multiplied with r columns. The weak directions v = F w / sqrt(1 - s^2) are kept by
// their coefficients, v = F A.

#include <cmath>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/complete.h"
#include "theseus/maps/completion.h"
#include "theseus/maps/polar.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

struct PartialFactors {
  Factors known;            // [ds, dt] but for the columns of F
  at::Tensor f;             // [ds, r]
  at::Tensor g;             // [dt, r]
  at::Tensor coefficients;  // [r, q]

  Factors map() const {
    return {known.identity, at::cat({known.left, f}, 1), at::cat({known.right, g}, 1)};
  }
  at::Tensor open() const { return f.matmul(coefficients); }  // [ds, q] orthonormal
};

PartialFactors fill_strong(const at::Tensor& l, const at::Tensor& r, const Factors& p) {
  auto f = p.before(r);  // [ds, r]
  f = f - l.matmul(l.t().matmul(f));
  const auto gram = row_gram(f.t().contiguous());  // [r, r]
  const auto [lambda, w] = at::linalg_eigh(gram);
  const auto s2 = (1 - lambda).clamp(0, 1);  // [r]
  const auto strong = s2 > kStrong;
  const auto s = s2.sqrt();
  const auto scale = at::where(strong, 1 / (s * (1 + s)), -1 / lambda);
  const auto core = (w * scale).matmul(w.t());          // [r, r]
  const auto fe = p.after(f.t()) - gram.matmul(r.t());  // F^T E [r, dt]
  const auto along = r - p.after(l.t()).t();            // [dt, r]
  const auto weak = strong.logical_not().nonzero().squeeze(1);
  return {
      .known = {p.identity, at::cat({p.left, l}, 1), at::cat({p.right, along}, 1)},
      .f = f,
      .g = (core.matmul(fe)).t() - r,
      .coefficients = w.index_select(1, weak) / lambda.index_select(0, weak).sqrt()};
}

void fill_weak(PartialFactors& partial, const Factors& p) {
  if (partial.coefficients.size(1) == 0) {
    return;
  }
  const auto t = partial.map();
  auto y = p.after(partial.open().t());  // [q, dt]
  for (int pass = 0; pass < 2; ++pass) {
    y = y - t.after(t.before(y.t()).t());
  }
  const auto found = polar(y, {.share = kPriorNoise, .floor = kOpen});
  const auto factor = found.factor().to(partial.coefficients.scalar_type());
  partial.g = partial.g + factor.t().matmul(partial.coefficients.t());
  partial.coefficients = found.left.defined() ? partial.coefficients.matmul(complement(found.left))
                                              : partial.coefficients.slice(1, 0, 0);
}

// As in complete.cpp: random vectors without their parts along the rows of T.
void fill_rest(PartialFactors& partial) {
  const auto q = partial.coefficients.size(1);
  if (q == 0) {
    return;
  }
  const auto t = partial.map();
  auto z = fixed_gaussian(t.target_width(), q + kSpare, t.right.options());  // [dt, q + spare]
  for (int pass = 0; pass < 2; ++pass) {
    z = z - t.after(t.before(z).t()).t();
  }
  const auto targets = best_spanned(z);  // [dt, q]
  partial.g = partial.g + targets.matmul(partial.coefficients.t());
  partial.coefficients = partial.coefficients.slice(1, 0, 0);
}

}  // namespace

Factors complete_factors(const at::Tensor& left, const at::Tensor& right, const Factors& prior) {
  const auto ds = left.size(0);
  const auto dt = right.size(0);
  if (ds > dt) {
    return complete_factors(right, left, prior.defined() ? prior.transposed() : prior).transposed();
  }
  const auto identity = identity_factors(ds, dt, left.options());
  const auto p = prior.defined() ? prior.to(at::kDouble) : identity;
  auto partial = fill_strong(left, right, p);
  fill_weak(partial, p);
  fill_weak(partial, identity);
  fill_rest(partial);
  return partial.map();
}

}  // namespace theseus::maps
