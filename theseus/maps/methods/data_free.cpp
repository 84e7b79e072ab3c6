// No activations: the i-th eigenvector of the source's weights goes to the i-th of the target's,
//
//   G = sum W W^T = U diag(lambda) U^T, lambda descending,   T = U_s U_t^T over min(r_s, r_t) of them
//
// An eigenvector has no sign of its own. The sum of the cubes of its entries, in the whole space,
// is made positive: it does not depend on the order of the units.

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/maps/gram.h"
#include "theseus/maps/isometry.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

at::Tensor with_signs(const at::Tensor& vectors, const at::Tensor& basis) {
  const auto whole = basis.defined() ? basis.matmul(vectors) : vectors;  // [d, r]
  return vectors * at::where(whole.pow(3).sum(0) < 0, -1.0, 1.0);
}

Map solve(const Problem& problem, const Options& options) {
  check_widths(problem);
  const auto source = spectrum(checked_source_gram(problem));
  const auto target = spectrum(checked_target_gram(problem));
  Polar polar{.rank = std::min(source.rank(), target.rank()), .route = "eigenvectors"};
  polar.left = with_signs(source.vectors.slice(1, 0, polar.rank), problem.source_basis);
  polar.right = with_signs(target.vectors.slice(1, 0, polar.rank), problem.target_basis);
  polar.condition = std::max(source.condition(), target.condition());
  return isometry_from(problem, polar, options.rank);
}

}  // namespace

const Method& data_free() {
  static const Method method = {
      .summary = "eigenvectors of the base weights, in order",
      .needs = {.moments = false, .weight_grams = true},
      .obeys = {.rank = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
