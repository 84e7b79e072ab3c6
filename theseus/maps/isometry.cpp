#include "theseus/maps/isometry.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/complete.h"
#include "theseus/maps/problem.h"
#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

// A float32 isometry is certified up to this; a few float32 products leave 4e-7.
constexpr double kIsometry = 1e-6;

// Q X, where undefined means the identity for either.
at::Tensor compose(const at::Tensor& basis, const at::Tensor& columns) {
  if (!basis.defined() || !columns.defined()) {
    return basis.defined() ? basis : columns;
  }
  return basis.matmul(columns.to(basis.scalar_type()));
}

// L R^T [ds, dt]
at::Tensor product(const at::Tensor& left, const at::Tensor& right, int64_t ds, int64_t dt) {
  if (!left.defined() || !right.defined()) {
    return left.defined() ? left : right.t();
  }
  const auto dtype = dtype_of_map(ds, dt, left.device());
  return left.to(dtype).matmul(right.to(dtype).t());
}

// One Newton-Schulz step: an error e becomes e^2, or float32's rounding.
at::Tensor polished(const at::Tensor& map) {
  if (map.size(0) > map.size(1)) {
    return polished(map.t()).t().contiguous();
  }
  const auto wide = map.to(dtype_of_products(map.device()));
  auto excess = row_gram(wide);
  excess.diagonal().sub_(1);
  return at::addmm(wide, excess, wide, 1, -0.5).to(map.scalar_type());
}

void certify(Map& map) {
  map.orthogonality = orthogonality(map.matrix);
  if (map.orthogonality > kIsometry) {
    map.matrix = polished(map.matrix);
    map.orthogonality = orthogonality(map.matrix);
  }
  require<NumericError>(
      map.orthogonality <= kIsometry, "the map is not an isometry: |T T^T - I| is ",
      map.orthogonality, " where ", kIsometry, " is the limit");
  map.isometry = true;
}

// The map as factors, or nothing where a matrix is the smaller or the prior is one.
std::optional<Map> find_factored(
    const Problem& problem, const at::Tensor& left, const at::Tensor& right, Map map, Rank rank) {
  const auto ds = problem.source_width;
  const auto dt = problem.target_width;
  const auto open = std::min(ds, dt) - map.rank;
  const bool partial = open == 0 || rank == Rank::kTruncate;
  const auto& prior = problem.prior_factors;
  const auto columns = partial ? map.rank : 2 * map.rank + (prior.defined() ? prior.count() : 0);
  if (!problem.factored || !left.defined() || !right.defined() || problem.prior.defined() ||
      !is_worthwhile(columns, ds, dt)) {
    return std::nullopt;
  }
  map.factors =
      (partial ? Factors{false, left, right} : complete_factors(left, right, prior)).to(at::kFloat);
  map.completed = partial ? 0 : open;
  if (open == map.completed) {
    map.orthogonality = orthogonality(map.factors);
    map.isometry = map.orthogonality <= kIsometry;
    if (!map.isometry) {
      return std::nullopt;  // a matrix can be polished
    }
  }
  return map;
}

Map any_isometry(const Problem& problem, const at::Tensor& core) {
  const auto matrix = expand(problem, core);  // [ds, dt]
  const auto [u, s, vt] = at::linalg_svd(matrix, /*full_matrices=*/false);
  const auto zero = std::max(problem.floor, problem.noise * s[0].item<double>());
  const auto counts = (s > zero).sum().item<int64_t>();
  const auto factor = u.matmul(vt);
  Map map{
      .matrix = as_map(factor),
      .rank = std::min({counts, problem.rows, problem.most}),
      .route = "arbitrary"};
  map.completed = s.size(0) - map.rank;
  map.asymmetry = asymmetry(matrix, factor);
  map.condition = map.rank == 0 ? 0 : (s[0] / s[map.rank - 1]).item<double>();
  certify(map);
  return map;
}

}  // namespace

Map isometry_from(const Problem& problem, const Polar& polar, Rank rank) {
  const auto ds = problem.source_width;
  const auto dt = problem.target_width;
  Map map{
      .rank = polar.rank,
      .route = polar.route,
      .asymmetry = polar.asymmetry,
      .condition = polar.condition};
  const auto left = compose(problem.source_basis, polar.left);    // [ds, r]
  const auto right = compose(problem.target_basis, polar.right);  // [dt, r]
  if (auto found = find_factored(problem, left, right, map, rank)) {
    return *std::move(found);
  }
  const auto open = std::min(ds, dt) - polar.rank;
  if (open == 0 || rank == Rank::kTruncate) {
    map.matrix = as_map(product(left, right, ds, dt));
  } else {
    const auto& prior = problem.prior_factors;
    const auto dense =
        prior.defined() ? prior.to(dtype_of_map(ds, dt, left.device())).dense() : problem.prior;
    map.matrix = as_map(complete(left, right, dense));
    map.completed = open;
  }
  if (open == map.completed) {
    certify(map);
  }
  return map;
}

Map isometry_near(const Problem& problem, const at::Tensor& core, Rank rank) {
  require<NumericError>(
      problem.floor > 0 || core.abs().max().item<double>() > 0,
      "the matrix whose isometry is asked for is zero");
  if (rank == Rank::kArbitrary && !problem.factored) {
    return any_isometry(problem, core);
  }
  return isometry_from(
      problem,
      polar(
          core, {.share = problem.noise,
                 .floor = problem.floor,
                 .most = std::min(problem.rows, problem.most),
                 .rounding = core.is_same(problem.cross) ? problem.rounding : Rounding()}),
      rank);
}

}  // namespace theseus::maps
