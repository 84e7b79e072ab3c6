// Least squares of the target's activations on the source's: T = (S^T S)^+ C.

#include "theseus/maps/gram.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options&) {
  const auto cross = checked_cross(problem);
  const auto gram = spectrum(checked_source_gram(problem));
  return linear_map(problem, gram.power(-1).matmul(cross), gram);
}

}  // namespace

const Method& linear() {
  static const Method method = {
      .summary = "least squares from source to target activations",
      .needs = {.source_gram = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
