// The isometry nearest to the map of `linear`: the polar factor of (S^T S)^+ C.

#include <algorithm>

#include "theseus/maps/gram.h"
#include "theseus/maps/isometry.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  const auto cross = checked_cross(problem);
  const auto gram = spectrum(checked_source_gram(problem));
  auto known = problem;  // beyond the range of the Gram there is rounding
  known.most = std::min(known.most, gram.rank());
  return isometry_near(known, gram.power(-1).matmul(cross), options.rank);
}

}  // namespace

const Method& linear_ortho() {
  static const Method method = {
      .summary = "the isometry nearest to the linear map",
      .needs = {.source_gram = true},
      .obeys = {.rank = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
