// The maps of `procrustes`, except that what a layer adds to the residual stream has the map of
// that stream, and none of its own.

#include "theseus/maps/isometry.h"
#include "theseus/maps/whiten.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  return isometry_near(problem, whitened_cross(problem, options), options.rank);
}

}  // namespace

const Method& stream() {
  static const Method method = {
      .summary = "as procrustes, with one map for all that is added to the residual stream",
      .stream = true,
      .obeys = {.rank = true, .whiten = true},
      .offered = true,
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
