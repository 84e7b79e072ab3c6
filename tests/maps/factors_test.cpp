// Maps as factors are the maps that the dense form gives.

#include "theseus/maps/factors.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/complete.h"
#include "theseus/maps/isometry.h"
#include "theseus/maps/method.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;

struct Sizes {
  int64_t ds, dt, r;
};
constexpr Sizes kWider = {60, 96, 7}, kNarrower = {96, 60, 7}, kSame = {80, 80, 9};
constexpr Sizes kSizes[] = {kWider, kNarrower, kSame, {200, 201, 20}, {5, 9, 1}, {30, 300, 29}};

Factors random_factors(int64_t ds, int64_t dt, int64_t k, bool identity) {
  return {identity, gaussian(ds, k, 1), gaussian(dt, k, 2)};
}

// A problem of paired rows: as bases with a core, and as the cross moment of the rows.
struct Paired {
  Problem thin, dense;
};

Paired paired(const at::Tensor& source, const at::Tensor& target) {
  const auto [qs, rs] = at::linalg_qr(source.t());
  const auto [qt, rt] = at::linalg_qr(target.t());
  Paired result;
  result.dense = {
      .source_width = source.size(1), .target_width = target.size(1), .rows = source.size(0)};
  result.thin = result.dense;
  result.dense.cross = source.t().matmul(target);
  result.thin.source_basis = qs;
  result.thin.target_basis = qt;
  result.thin.cross = rs.matmul(rt.t());
  result.thin.factored = true;
  return result;
}

Paired random_pair(const Sizes& sizes, uint64_t seed = 5) {
  return paired(gaussian(sizes.r, sizes.ds, seed), gaussian(sizes.r, sizes.dt, seed + 1));
}

Map solve(const Problem& problem, Rank rank = Rank::kComplete) {
  return method("procrustes").solve(problem, {.rank = rank});
}

// More open directions than a float64 route is taken for: their factor comes in float32.
TEST(Factors, AreCompletedWhereManyDirectionsAreWeak) {
  constexpr int64_t kRows = 1100, kWidth = 2300;
  const auto unit = at::eye(kWidth, at::kDouble);
  const auto left = unit.slice(1, 0, kRows);
  const auto right = 0.3 * left + std::sqrt(0.91) * unit.slice(1, kRows, 2 * kRows);
  const auto map = complete_factors(left, right, {});
  EXPECT_LT(orthogonality(map), 1e-6);
  EXPECT_LT((map.before(right) - left).norm().item<double>(), 1e-4);
}

TEST(Factors, ApplyAsTheirMatrixDoes) {
  for (const auto& [ds, dt, r] : kSizes) {
    for (const bool identity : {false, true}) {
      SCOPED_TRACE(testing::Message() << ds << " x " << dt << (identity ? " and identity" : ""));
      const auto factors = random_factors(ds, dt, r, identity);
      const auto dense = factors.left.matmul(factors.right.t()) +
                         (identity ? 1 : 0) * at::eye(ds, dt, at::kDouble);
      const auto x = gaussian(4, ds, 3), y = gaussian(dt, 4, 4);
      // Sums of up to 300 float64 products of numbers near 1.
      EXPECT_LT(distance(factors.dense(), dense), 1e-13);
      EXPECT_LT(distance(factors.after(x), x.matmul(dense)), 1e-11);
      EXPECT_LT(distance(factors.before(y), dense.matmul(y)), 1e-11);
      EXPECT_LT(distance(factors.transposed().dense(), dense.t()), 1e-13);
      const auto half = ds / 2;
      EXPECT_LT(distance(factors.rows(half, ds - half), dense.slice(0, half)), 1e-13);
    }
  }
}

TEST(Factors, CompleteAsTheMatrixDoes) {
  for (const auto& [ds, dt, r] : kSizes) {
    SCOPED_TRACE(testing::Message() << ds << " x " << dt << ", rank " << r);
    const auto left = orthonormal(ds, r, 1), right = orthonormal(dt, r, 2);
    const auto first = complete_factors(left, right, {});
    EXPECT_EQ(first.count(), 2 * r);
    EXPECT_LT(orthogonality(first.dense()), 1e-12);
    EXPECT_LT(distance(left.t().matmul(first.dense()), right.t()), 1e-12);
    // Directions that only a small overlap determines lose up to three digits, in either form.
    EXPECT_LT(distance(first.dense(), complete(left, right, {})), 1e-9);
    // That one as the prior of another.
    const auto l = orthonormal(ds, r, 3), t = orthonormal(dt, r, 4);
    const auto second = complete_factors(l, t, first);
    EXPECT_EQ(second.count(), 4 * r);
    EXPECT_LT(orthogonality(second.dense()), 1e-12);
    EXPECT_LT(distance(l.t().matmul(second.dense()), t.t()), 1e-12);
    EXPECT_LT(distance(second.dense(), complete(l, t, first.dense())), 1e-9);
  }
}

TEST(Factors, FillWhatNoPriorReaches) {
  const auto unit = at::eye(64, at::kDouble);
  const auto right = at::cat({unit.slice(1, 0, 1), unit.slice(1, 2)}, 1);
  const auto map = complete_factors(unit.slice(1, 1), right, {}).dense();
  EXPECT_LT(orthogonality(map), 1e-12);
  EXPECT_LT(distance(unit.slice(1, 1).t().matmul(map), right.t()), 1e-12);
}

TEST(Factors, OfFewRowsAreTheMapOfTheirMoment) {
  for (const auto& sizes : {kWider, kNarrower, kSame}) {
    SCOPED_TRACE(testing::Message() << sizes.ds << " x " << sizes.dt);
    const auto problem = random_pair(sizes);
    const auto thin = solve(problem.thin), dense = solve(problem.dense);
    ASSERT_TRUE(thin.factors.defined());
    EXPECT_FALSE(thin.matrix.defined());
    EXPECT_EQ(thin.factors.left.scalar_type(), at::kFloat);
    EXPECT_EQ(thin.rank, sizes.r);
    EXPECT_EQ(thin.rank, dense.rank);
    EXPECT_EQ(thin.completed, dense.completed);
    EXPECT_TRUE(thin.isometry);
    EXPECT_LT(thin.orthogonality, 1e-6);
    EXPECT_LT(thin.asymmetry, 1e-9);
    EXPECT_NEAR(thin.condition / dense.condition, 1, 1e-9);
    // Both are rounded to float32.
    EXPECT_LT(distance(thin.dense(), dense.matrix), 2e-6);
  }
}

TEST(Factors, TruncatedAreThePartialIsometry) {
  for (const auto& sizes : {kWider, kNarrower, kSame}) {
    const auto problem = random_pair(sizes);
    const auto thin = solve(problem.thin, Rank::kTruncate);
    ASSERT_TRUE(thin.factors.defined());
    EXPECT_FALSE(thin.factors.identity);
    EXPECT_EQ(thin.factors.count(), sizes.r);
    EXPECT_EQ(thin.completed, 0);
    EXPECT_LT(distance(thin.dense(), solve(problem.dense, Rank::kTruncate).matrix), 1e-6);
  }
}

// What is arbitrary may differ; what is determined may not.
TEST(Factors, ArbitraryAgreesWhereItIsDetermined) {
  const auto problem = random_pair(kWider);
  const auto thin = solve(problem.thin, Rank::kArbitrary);
  ASSERT_TRUE(thin.factors.defined());
  EXPECT_LT(thin.orthogonality, 1e-6);
  const auto& known = problem.thin.source_basis;
  EXPECT_LT(
      distance(
          known.t().matmul(thin.dense().to(at::kDouble)),
          known.t().matmul(solve(problem.dense, Rank::kArbitrary).matrix.to(at::kDouble))),
      1e-6);
}

TEST(Factors, OntoTheSameAreTheIdentity) {
  const auto rows = gaussian(9, 120, 3);
  const auto map = solve(paired(rows, rows).thin);
  ASSERT_TRUE(map.factors.defined());
  EXPECT_LT(distance(map.dense(), at::eye(120)), 1e-7);
  // So is one with the other as its prior.
  auto again = paired(rows + gaussian(9, 120, 4), rows + gaussian(9, 120, 4)).thin;
  again.prior_factors = map.factors;
  EXPECT_LT(distance(solve(again).dense(), at::eye(120)), 1e-7);
}

// The same rows over and over say no more than once.
TEST(Factors, CountOnlyWhatRowsSay) {
  const auto source = gaussian(5, 90, 1), target = gaussian(5, 70, 2);
  const auto twice = paired(at::cat({source, source}, 0), at::cat({target, target}, 0));
  const auto map = solve(twice.thin);
  ASSERT_TRUE(map.factors.defined());
  EXPECT_EQ(map.rank, 5);
  EXPECT_EQ(map.completed, 65);
  EXPECT_LT(distance(map.dense(), solve(paired(source, target).thin).dense()), 1e-6);
}

TEST(Factors, AreAMatrixWhereThatIsSmaller) {
  const auto problem = random_pair({40, 40, 19});
  const auto map = solve(problem.thin);
  EXPECT_FALSE(map.factors.defined());
  EXPECT_LT(distance(map.matrix, solve(problem.dense).matrix), 2e-6);
}

TEST(Factors, TakeAMatrixForAPrior) {
  auto problem = random_pair(kSame);
  const auto prior = orthonormal(kSame.ds, kSame.ds, 9);
  problem.thin.prior = problem.dense.prior = prior;
  EXPECT_LT(distance(solve(problem.thin).dense(), solve(problem.dense).matrix), 2e-6);
}

TEST(Factors, OfMapsThatAreNoIsometries) {
  for (const char* word : {"linear", "pinv", "pinv-tikhonov", "linear-ortho", "pinv-ortho"}) {
    SCOPED_TRACE(word);
    auto [thin, dense] = random_pair({64, 96, 8});
    for (auto* problem : {&thin, &dense}) {
      const auto& basis = problem->source_basis;
      const auto rows = gaussian(8, 64, 5), target = gaussian(8, 96, 6);
      const auto s = basis.defined() ? rows.matmul(basis) : rows;
      const auto r = basis.defined() ? target.matmul(problem->target_basis) : target;
      problem->source_gram = s.t().matmul(s);
      problem->target_gram = r.t().matmul(r);
    }
    const auto found = method(word).solve(thin, {});
    const auto expected = method(word).solve(dense, {});
    ASSERT_TRUE(found.factors.defined());
    EXPECT_EQ(found.rank, expected.rank);
    const auto size = expected.matrix.abs().max().item<double>();
    EXPECT_LT(distance(found.dense(), expected.matrix), 1e-5 * size);
  }
}

// Here certificates are estimates, and the dense form computes in float32.
TEST(Factors, HoldAtAWidthWhereTheMatrixIsFloat32) {
  const auto problem = random_pair({1100, 1300, 12});
  const auto thin = solve(problem.thin);
  ASSERT_TRUE(thin.factors.defined());
  EXPECT_LT(thin.orthogonality, 1e-6);
  EXPECT_LT(distance(thin.dense(), solve(problem.dense).matrix), 1e-5);
}

}  // namespace
}  // namespace theseus::maps
