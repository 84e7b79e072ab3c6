#include "theseus/maps/problem.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::maps {
namespace {

bool is_finite(const at::Tensor& tensor) {
  return at::isfinite(tensor.sum()).item<bool>() || at::isfinite(tensor).all().item<bool>();
}

void check_tensor(const at::Tensor& tensor, const char* name, at::IntArrayRef shape) {
  require(tensor.defined(), "this method needs ", name, ", which was not collected");
  require(tensor.sizes() == shape, name, " has shape ", tensor.sizes(), ", expected ", shape);
  require(
      tensor.scalar_type() == at::kDouble, name, " is ", tensor.scalar_type(),
      ", expected float64");
  require<NumericError>(is_finite(tensor), name, " holds a value that is not finite");
}

int64_t source_size(const Problem& problem) {
  return problem.source_basis.defined() ? problem.source_basis.size(1) : problem.source_width;
}

int64_t target_size(const Problem& problem) {
  return problem.target_basis.defined() ? problem.target_basis.size(1) : problem.target_width;
}

void check_basis(const at::Tensor& basis, const char* name, int64_t width) {
  if (!basis.defined()) {
    return;
  }
  require(
      basis.dim() == 2 && basis.size(0) == width && basis.size(1) <= width && basis.size(1) > 0,
      name, " has shape ", basis.sizes(), "; the space is ", width, " wide");
  check_tensor(basis, name, basis.sizes());
}

}  // namespace

void check_widths(const Problem& problem) {
  const auto ds = problem.source_width;
  const auto dt = problem.target_width;
  require(ds > 0 && dt > 0, "a map needs positive widths, found ", ds, " and ", dt);
  check_basis(problem.source_basis, "the source basis", ds);
  check_basis(problem.target_basis, "the target basis", dt);
  if (problem.prior.defined()) {
    require(
        problem.prior.sizes() == at::IntArrayRef({ds, dt}), "the prior has shape ",
        problem.prior.sizes(), ", expected [", ds, ", ", dt, "]");
    require<NumericError>(is_finite(problem.prior), "the prior holds a value that is not finite");
  }
  if (const auto& prior = problem.prior_factors; prior.defined()) {
    require(
        prior.source_width() == ds && prior.target_width() == dt, "the prior maps ",
        prior.source_width(), " to ", prior.target_width(), ", expected ", ds, " to ", dt);
  }
}

void check_same_widths(const Problem& problem, std::string_view method) {
  check_widths(problem);
  require(
      problem.source_width == problem.target_width, method, " needs equal widths, found ",
      problem.source_width, " and ", problem.target_width, "; procrustes maps between any two");
}

at::Tensor checked_cross(const Problem& problem) {
  check_widths(problem);
  check_tensor(problem.cross, "the cross moment", {source_size(problem), target_size(problem)});
  require<NumericError>(
      problem.floor > 0 || problem.cross.count_nonzero().item<int64_t>() > 0,
      "the cross moment is zero: the paired rows have nothing in common to align by");
  return problem.cross;
}

at::Tensor checked_source_gram(const Problem& problem) {
  const auto size = source_size(problem);
  check_tensor(problem.source_gram, "the source's Gram matrix", {size, size});
  return problem.source_gram;
}

at::Tensor checked_target_gram(const Problem& problem) {
  const auto size = target_size(problem);
  check_tensor(problem.target_gram, "the target's Gram matrix", {size, size});
  return problem.target_gram;
}

at::Tensor expand(const Problem& problem, const at::Tensor& core) {
  auto map = core;
  if (problem.source_basis.defined()) {
    map = problem.source_basis.matmul(map);
  }
  if (problem.target_basis.defined()) {
    map = map.matmul(problem.target_basis.t());
  }
  return map;
}

at::Tensor as_map(const at::Tensor& matrix) {
  auto map = matrix.to(at::kFloat).contiguous();
  require<NumericError>(is_finite(map), "the map holds a value that is not finite in float32");
  return map;
}

at::TensorOptions map_options(const Problem& problem) {
  for (const auto& tensor : {problem.cross, problem.source_gram, problem.prior}) {
    if (tensor.defined()) {
      return tensor.options().dtype(at::kFloat);
    }
  }
  return at::kFloat;
}

Map rectangular_identity(const Problem& problem) {
  check_widths(problem);
  const auto ds = problem.source_width;
  const auto dt = problem.target_width;
  return {
      .matrix = at::eye(ds, dt, map_options(problem)),
      .rank = std::min(ds, dt),
      .route = "identity",
      .isometry = true,
      .condition = 1};
}

Map linear_map(const Problem& problem, const at::Tensor& core, const Spectrum& gram) {
  Map map{.rank = gram.rank(), .route = "eigh", .condition = gram.condition()};
  const auto& right = problem.target_basis;
  const bool factored = problem.factored && problem.source_basis.defined() && right.defined() &&
                        is_worthwhile(right.size(1), problem.source_width, problem.target_width);
  if (factored) {
    map.factors = {false, as_map(problem.source_basis.matmul(core)), as_map(right)};
  } else {
    map.matrix = as_map(expand(problem, core));
  }
  return map;
}

}  // namespace theseus::maps
