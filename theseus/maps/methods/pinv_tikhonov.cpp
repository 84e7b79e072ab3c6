// `pinv` with a ridge: T = C (R^T R + lambda I)^-1, lambda relative to the mean eigenvalue of R^T R.

#include <ATen/ATen.h>

#include "theseus/maps/gram.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options& options) {
  const auto cross = checked_cross(problem);
  const auto target = checked_target_gram(problem);
  const auto gram = spectrum(target);
  // Over the whole width, so that a thin basis changes nothing.
  const auto mean = target.trace().item<double>() / static_cast<double>(problem.target_width);
  return linear_map(problem, cross.matmul(gram.ridge_inverse(options.ridge * mean)), gram);
}

}  // namespace

const Method& pinv_tikhonov() {
  static const Method method = {
      .summary = "pinv with a ridge",
      .needs = {.target_gram = true},
      .obeys = {.ridge = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
