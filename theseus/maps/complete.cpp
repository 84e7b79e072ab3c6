// Completing a partial isometry L R^T, ds <= dt (otherwise its transpose), by an isometry P:
//
//   E = (I - L L^T) P (I - R R^T),   T = L R^T + polar(E)
//   F = (I - L L^T) P R              [ds, r]
//   E E^T = (I - L L^T) - F F^T,     F^T F = W diag(1 - s^2) W^T   [r, r]
//   polar(E) = E + F W diag(1 / (s (1 + s))) W^T F^T E
//
// so no basis of a complement is ever formed. E scales the direction v = F w / sqrt(1 - s^2) by s. Where s
// is small the division would amplify the rounding of P, so those v are left out (-1 / (1 - s^2)
// instead), and filled together afterwards: Y = v^T P less its part along the rows of T, T += v polar(Y).
// polar(Y) leaves open what Y does not determine; the next P tries, and at last random vectors do.

#include "theseus/maps/complete.h"

#include <cmath>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/completion.h"
#include "theseus/maps/polar.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

// A prior further from an isometry than this is replaced by the nearest one.
constexpr double kIsometric = 1e-5;

struct Partial {
  at::Tensor map;   // [ds, dt]
  at::Tensor open;  // [ds, q] float64, orthonormal: source directions that the map sends to zero
};

Partial fill_strong(const at::Tensor& l, const at::Tensor& r, const at::Tensor& p) {
  const auto lp = l.t().matmul(p);  // [r, dt]
  auto f = p.matmul(r);             // [ds, r]
  f = f - l.matmul(l.t().matmul(f));
  const auto f64 = f.to(at::kDouble);
  const auto gram = row_gram(f64.t());  // [r, r]
  const auto [lambda, w] = at::linalg_eigh(gram);
  const auto s2 = (1 - lambda).clamp(0, 1);  // [r]
  const auto strong = s2 > kStrong;
  const auto s = s2.sqrt();
  const auto scale = at::where(strong, 1 / (s * (1 + s)), -1 / lambda);
  const auto core = (w * scale).matmul(w.t()).to(f.scalar_type());  // [r, r]
  auto fe = f.t().matmul(p);                                        // F^T E [r, dt]
  fe.addmm_(gram.to(f.scalar_type()), r.t(), 1, -1);
  auto map = p.clone();
  map.addmm_(l, r.t() - lp);
  map.addmm_(f, core.matmul(fe).sub_(r.t()));
  const auto weak = strong.logical_not().nonzero().squeeze(1);
  const auto open = f64.matmul(w.index_select(1, weak)) / lambda.index_select(0, weak).sqrt();
  return {map, open};
}

void fill_weak(Partial& partial, const at::Tensor& p) {
  if (partial.open.size(1) == 0) {
    return;
  }
  const auto& t = partial.map;
  const auto open = partial.open.to(t.scalar_type());  // [ds, q]
  auto y = open.t().matmul(p);                         // [q, dt]
  for (int pass = 0; pass < 2; ++pass) {  // the second removes the rounding of the first
    y = y - y.matmul(t.t()).matmul(t);
  }
  const auto found = polar(y.to(at::kDouble), {.share = kPriorNoise, .floor = kOpen});
  const auto factor = found.factor().to(t.scalar_type());  // [q, dt]
  partial.map = t + open.matmul(factor);
  partial.open = found.left.defined() ? partial.open.matmul(complement(found.left))
                                      : partial.open.slice(1, 0, 0);
}

// Any orthonormal targets for what is open: more random vectors than are needed, without their parts along
// the rows of T, span what is left as well as it can be spanned.
void fill_rest(Partial& partial) {
  const auto q = partial.open.size(1);
  if (q == 0) {
    return;
  }
  const auto t = partial.map.to(at::kDouble);
  auto z = fixed_gaussian(t.size(1), q + kSpare, t.options());  // [dt, q + spare]
  for (int pass = 0; pass < 2; ++pass) {
    z = z - t.t().matmul(t.matmul(z));
  }
  const auto targets = best_spanned(z);  // [dt, q]
  partial.map = (t + partial.open.matmul(targets.t())).to(partial.map.scalar_type());
  partial.open = partial.open.slice(1, 0, 0);
}

at::Tensor isometry_near(const at::Tensor& prior) {
  if (orthogonality(prior) <= kIsometric) {
    return prior;
  }
  const auto found = polar(prior.to(at::kDouble), {.share = kPriorNoise});
  if (found.rank == std::min(prior.size(0), prior.size(1))) {
    return found.factor();
  }
  return complete(found.left, found.right, {});
}

at::Tensor complete_wide(const at::Tensor& left, const at::Tensor& right, const at::Tensor& prior) {
  const auto ds = left.size(0);
  const auto dt = right.size(0);
  const auto dtype = dtype_of_map(ds, dt, left.device());
  const auto options = left.options().dtype(dtype);
  const auto identity = at::eye(ds, dt, options);  // [ds, dt]
  const auto p = prior.defined() ? isometry_near(prior).to(dtype) : identity;
  auto partial = fill_strong(left.to(dtype), right.to(dtype), p);
  fill_weak(partial, p);
  fill_weak(partial, identity);
  fill_rest(partial);
  return partial.map;
}

}  // namespace

at::Tensor complete(const at::Tensor& left, const at::Tensor& right, const at::Tensor& prior) {
  if (left.size(0) <= right.size(0)) {
    return complete_wide(left, right, prior);
  }
  return complete_wide(right, left, prior.defined() ? prior.t() : prior).t();
}

}  // namespace theseus::maps
