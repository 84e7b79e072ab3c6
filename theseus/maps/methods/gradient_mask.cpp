// T = I, and of the update only what goes down the target's loss: see gradient::masked.

#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options&) {
  check_same_widths(problem, "gradient-mask");
  return rectangular_identity(problem);
}

}  // namespace

const Method& gradient_mask() {
  static const Method method = {
      .summary = "the update where its signs agree with the target's gradients; needs labels",
      .needs = {.moments = false},
      .same_widths = true,
      .masks = true,
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
