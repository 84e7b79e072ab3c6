#include "theseus/output/held_out.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/transport/compatible.h"

namespace theseus::output {
namespace {

double trace_of_product(const at::Tensor& left, const at::Tensor& right) {
  return (left * right).sum().item<double>();  // tr(left^T right)
}

struct Energies {
  double both = 0, source = 0, target = 0;  // tr(T^T C), tr(T^T G_s T), tr(G_r)

  double cosine() const {
    const auto norm = std::sqrt(std::max(source, 0.0) * std::max(target, 0.0));
    return norm > 0 ? std::clamp(both / norm, -1.0, 1.0) : 0;
  }
  double residual() const {
    return target > 0 ? std::sqrt(std::max(source - 2 * both + target, 0.0) / target) : 0;
  }
};

// The moments may be those of coordinates in a basis; then T is taken into the bases.
Energies energies(const maps::Problem& problem, const at::Tensor& map) {
  const auto left =
      problem.source_basis.defined() ? at::mm(problem.source_basis.t(), map) : map;  // [ks, dt]
  const auto core =
      problem.target_basis.defined() ? at::mm(left, problem.target_basis) : left;  // [ks, kt]
  return {
      .both = trace_of_product(core, problem.cross),
      .source = trace_of_product(left, at::mm(problem.source_gram, left)),
      .target = problem.target_gram.trace().item<double>()};
}

transport::Solver solver_of(const Opened& opened, const stats::Route& route, bool center) {
  return {
      opened.source, opened.target, route, maps::method("procrustes"),
      maps::Options{.center = center}};
}

}  // namespace

HeldOut::HeldOut(
    Opened& opened,
    const stats::Calibration& inputs,
    const stats::Route& route,
    const transport::AlignOptions& options,
    const transport::SpaceSet& needed)
    : inputs_(inputs),
      raw_(solver_of(opened, route, false)),
      centred_(solver_of(opened, route, true)),
      walk_(
          opened.source,
          opened.target,
          route,
          {.matchers = transport::matchers_of(
               opened.target.architecture(), options.tokens, inputs.has_spans()),
           .grams = {.source = true, .target = true},
           .observed = raw_.observed_for(needed)}),
      states_(static_cast<size_t>(inputs.batches())) {}

std::map<std::string, Likeness> HeldOut::measure(int64_t stage, const transport::MapSet& maps) {
  std::map<int64_t, stats::Moments> moments;
  for (int64_t batch = 0; batch < inputs_.batches(); ++batch) {
    with_context(c10::str("running held-out batch ", batch + 1), [&] {
      walk_.run(
          stage, stage + 1, inputs_.pair(batch, stage), states_[static_cast<size_t>(batch)],
          moments);
    });
  }
  walk_.drop(stage, stage + 1);
  stats::require_finite(moments);
  raw_.remember_outer(moments[stage]);
  centred_.remember_outer(moments[stage]);
  std::map<std::string, Likeness> result;
  for (const auto& [space, map] : maps) {
    const auto problem = raw_.problem(space, stage, moments[stage]);
    if (!problem.cross.defined()) {
      continue;
    }
    const auto matrix = map.dense().to(problem.cross.device(), at::kDouble);
    const auto identity = at::eye(matrix.size(0), matrix.size(1), matrix.options());
    const auto mapped = energies(problem, matrix);
    result[space] = {
        .before = energies(problem, identity).cosine(),
        .after = mapped.cosine(),
        .centred = energies(centred_.problem(space, stage, moments[stage]), matrix).cosine(),
        .residual = mapped.residual()};
  }
  return result;
}

at::Tensor determined(const maps::Problem& problem, int64_t rank) {
  if (!problem.cross.defined()) {
    return {};
  }
  const auto values = at::linalg_eigh(at::mm(problem.cross, problem.cross.t()));
  const auto& vectors = std::get<1>(values);  // eigenvalues ascend
  const auto count = std::min(rank, vectors.size(1));
  const auto core = vectors.narrow(1, vectors.size(1) - count, count);
  return problem.source_basis.defined() ? at::mm(problem.source_basis, core) : core;
}

}  // namespace theseus::output
