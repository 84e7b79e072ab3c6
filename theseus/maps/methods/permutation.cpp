// The permutation pi of units that maximises sum_i C[i, pi(i)], T[i, pi(i)] = 1. With heads, every
// pair of heads is scored by its best assignment of units (or, where positions within a head have a
// meaning, unit by unit), heads are assigned by those scores, then units within the matched heads.

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/maps/assignment.h"
#include "theseus/maps/problem.h"

namespace theseus::maps::methods {
namespace {

at::Tensor assign_units(const at::Tensor& score, bool rigid) {
  return rigid ? at::arange(score.size(0)) : assign(score);
}

double value(const at::Tensor& score, const at::Tensor& column) {
  return score.gather(1, column.unsqueeze(1)).sum().item<double>();
}

// pi [d] with the heads as wholes. score: [d, d]
at::Tensor assign_heads(const at::Tensor& score, int64_t heads, bool rigid) {
  const auto size = score.size(0) / heads;
  const auto block = [&](int64_t source, int64_t target) {
    return score.slice(0, source * size, (source + 1) * size)
        .slice(1, target * size, (target + 1) * size);
  };
  auto scores = at::empty({heads, heads}, at::kDouble);
  for (int64_t i = 0; i < heads; ++i) {
    for (int64_t j = 0; j < heads; ++j) {
      scores[i][j] = value(block(i, j), assign_units(block(i, j), rigid));
    }
  }
  const auto matched = assign(scores);
  std::vector<at::Tensor> columns;
  for (int64_t i = 0; i < heads; ++i) {
    const auto j = matched[i].item<int64_t>();
    columns.push_back(j * size + assign_units(block(i, j), rigid));
  }
  return at::cat(columns);
}

Map solve(const Problem& problem, const Options&) {
  check_same_widths(problem, "permutation");
  const auto score = expand(problem, checked_cross(problem)).cpu();  // [d, d]
  const auto width = problem.source_width;
  const auto heads = problem.source_heads;
  require(
      heads == problem.target_heads, "permutation needs equal numbers of heads, found ", heads,
      " and ", problem.target_heads);
  require(
      heads >= 0 && (heads == 0 || width % heads == 0), heads, " heads do not divide a width of ",
      width);
  const auto column = heads > 0 ? assign_heads(score, heads, problem.rigid_heads) : assign(score);
  auto map = at::zeros({width, width});
  map.scatter_(1, column.unsqueeze(1), 1);
  return {
      .matrix = map.to(problem.cross.device()),
      .rank = width,
      .route = "assignment",
      .isometry = true,
      .condition = 1};
}

}  // namespace

const Method& permutation() {
  static const Method method = {
      .summary = "the best matching of units by the base weights, between equal shapes",
      .needs = {.moments = false, .weight_cross = true},
      .same_widths = true,
      .solve = solve};
  return method;
}

}  // namespace theseus::maps::methods
