// The maps of `procrustes` for what layers read. What layers write is aligned by gradients of a loss there:
// with rows dL/dy of both models for the same tokens, T is the polar factor of their cross moment. What
// these leave open is as activations have it (rank `complete`).

#include "theseus/maps/isometry.h"
#include "theseus/maps/whiten.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  return isometry_near(problem, whitened_cross(problem, options), options.rank);
}

}  // namespace

const Method& gradient_output() {
  static const Method method = {
      .summary = "inputs as procrustes, outputs by paired gradients of a loss; needs labels",
      .needs = {.gradients = true},
      .obeys = {.rank = true, .whiten = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
