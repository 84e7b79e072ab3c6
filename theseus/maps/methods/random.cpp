// A Gaussian update with the norms of the source's. Nothing goes through the map, which is that of `pad`.

#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options&) {
  return rectangular_identity(problem);
}

}  // namespace

const Method& random() {
  static const Method method = {
      .summary = "noise with the norms of the update",
      .needs = {.moments = false},
      .carries = Carries::kNoise,
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
