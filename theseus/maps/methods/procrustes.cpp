// Orthogonal Procrustes: the isometry T that maximises tr(T^T C), the polar factor of C = S^T R; with
// whitening that of (S^T S)^-p C (R^T R)^-p.

#include "theseus/maps/isometry.h"
#include "theseus/maps/whiten.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  return isometry_near(problem, whitened_cross(problem, options), options.rank);
}

}  // namespace

const Method& procrustes() {
  static const Method method = {
      .summary = "the isometry that best aligns paired activations",
      .obeys = {.rank = true, .whiten = true},
      .offered = true,
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
