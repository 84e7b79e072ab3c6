// The minimiser of |S_o delta_A S_i^T - R_o delta_B R_i^T|, in closed form:
//
//   delta_B = (R_o^T R_o)^+ C_o^T delta_A C_i (R_i^T R_i)^+,  so  T = C (R^T R)^+  on each side.

#include "theseus/maps/gram.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

Map solve(const Problem& problem, const Options&) {
  const auto cross = checked_cross(problem);
  const auto gram = spectrum(checked_target_gram(problem));
  return linear_map(problem, cross.matmul(gram.power(-1)), gram);
}

}  // namespace

const Method& pinv() {
  static const Method method = {
      .summary = "the closed form of the bilinear objective",
      .needs = {.target_gram = true},
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
