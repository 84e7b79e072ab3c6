// T = the rectangular identity: the update padded with zeros, or cropped.

#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options&) {
  return rectangular_identity(problem);
}

}  // namespace

const Method& pad() {
  static const Method method = {
      .summary = "the update padded with zeros or cropped to the target's shapes",
      .needs = {.moments = false},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
