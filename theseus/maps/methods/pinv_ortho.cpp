// The isometry nearest to the map of `pinv`: the polar factor of C (R^T R)^+.

#include <algorithm>

#include "theseus/maps/gram.h"
#include "theseus/maps/isometry.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  const auto cross = checked_cross(problem);
  const auto gram = spectrum(checked_target_gram(problem));
  auto known = problem;  // beyond the range of the Gram there is rounding
  known.most = std::min(known.most, gram.rank());
  return isometry_near(known, cross.matmul(gram.power(-1)), options.rank);
}

}  // namespace

const Method& pinv_ortho() {
  static const Method method = {
      .summary = "the isometry nearest to the map of pinv",
      .needs = {.target_gram = true},
      .obeys = {.rank = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
