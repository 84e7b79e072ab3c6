// The maps of `procrustes`; what they carry is a Gaussian update with the norms of the source's.

#include "theseus/maps/isometry.h"
#include "theseus/maps/whiten.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  return isometry_near(problem, whitened_cross(problem, options), options.rank);
}

}  // namespace

const Method& random_transported() {
  static const Method method = {
      .summary = "noise with the norms of the update, carried by procrustes",
      .carries = Carries::kRandomUpdate,
      .obeys = {.rank = true, .whiten = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
