// What each method promises beyond a sound map.

#include <cmath>

#include <gtest/gtest.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/method.h"

#include "tests/maps/random_matrix.h"
#include "tests/support/expect_error.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;

Problem problem_of(const at::Tensor& source, const at::Tensor& target) {
  return {
      .source_width = source.size(1),
      .target_width = target.size(1),
      .rows = source.size(0),
      .cross = source.t().matmul(target),
      .source_gram = source.t().matmul(source),
      .target_gram = target.t().matmul(target)};
}

Map solve(const char* word, const Problem& problem, const Options& options = {}) {
  return method(word).solve(problem, options);
}

TEST(Methods, RecoverAPlantedRotation) {
  const auto source = gaussian(400, 30, 1) * at::logspace(0, -2, 30, 10.0, at::kDouble) + 0.3;
  const auto rotation = orthonormal(45, 30, 2).t();  // [30, 45]
  const auto problem = problem_of(source, source.matmul(rotation));
  for (const auto* word :
       {"procrustes", "random-transported", "linear", "linear-ortho", "pinv", "pinv-ortho"}) {
    SCOPED_TRACE(word);
    EXPECT_LT(distance(solve(word, problem).matrix, rotation), 2e-6);
  }
  for (const double p : {0.1, 0.25, 0.5}) {
    EXPECT_LT(distance(solve("procrustes", problem, {.whiten = p}).matrix, rotation), 2e-6);
  }
}

TEST(Methods, ATikhonovMapShrinksWithTheRidge) {
  const auto source = gaussian(100, 8, 1);
  const auto problem = problem_of(source, source);
  EXPECT_LT(distance(solve("pinv-tikhonov", problem, {.ridge = 0}).matrix, at::eye(8)), 1e-6);
  const auto small = solve("pinv-tikhonov", problem, {.ridge = 1e-2}).matrix;
  EXPECT_LT(distance(small, at::eye(8)), 2e-2);
  EXPECT_LT(small.norm().item<double>(), std::sqrt(8.0));
}

TEST(Methods, WhatIsBelowTheFloorIsNotTakenForStatistics) {
  auto problem = problem_of(gaussian(300, 20, 1), gaussian(300, 33, 2));
  problem.floor = 2 * problem.cross.norm().item<double>();
  const auto map = solve("procrustes", problem);
  EXPECT_EQ(map.rank, 0);
  EXPECT_EQ(map.completed, 20);
  EXPECT_LT(distance(map.matrix, at::eye(20, 33)), 1e-6);
  EXPECT_EQ(solve("procrustes", problem, {.rank = Rank::kArbitrary}).rank, 0);
}

TEST(Methods, RoundingBeyondTheRangeOfAGramIsNoDirection) {
  const auto low = gaussian(50, 6, 1);
  auto problem = problem_of(low.matmul(gaussian(6, 30, 2)), low.matmul(gaussian(6, 40, 3)));
  problem.cross += 1e-10 * problem.cross.abs().max() * gaussian(30, 40, 4);
  EXPECT_EQ(solve("linear-ortho", problem).rank, 6);
  EXPECT_EQ(solve("pinv-ortho", problem).rank, 6);
}

TEST(Methods, RowsThatAreAllTheSameLeaveEverythingOpenOnceCentred) {
  const Problem problem = {
      .source_width = 8,
      .target_width = 12,
      .rows = 5,
      .floor = 1e-9,
      .cross = at::zeros({8, 12}, at::kDouble)};
  const auto map = solve("procrustes", problem);
  EXPECT_EQ(map.rank, 0);
  EXPECT_EQ(map.completed, 8);
  EXPECT_LT(orthogonality(map.matrix), 1e-6);
}

TEST(Methods, WideningKeepsTheNorm) {
  const auto map = solve("procrustes", problem_of(gaussian(300, 20, 1), gaussian(300, 33, 2)));
  const auto delta = gaussian(20, 20, 3).to(at::kFloat);
  const auto carried = map.matrix.t().matmul(delta).matmul(map.matrix);
  EXPECT_NEAR((carried.norm() / delta.norm()).item<double>(), 1, 1e-6);
}

TEST(Methods, PoliciesDifferOnlyWhereNothingIsKnown) {
  const auto problem = problem_of(gaussian(9, 20, 1), gaussian(9, 30, 2));
  const auto partial = solve("procrustes", problem, {.rank = Rank::kTruncate});
  EXPECT_EQ(partial.rank, 9);
  EXPECT_EQ(partial.completed, 0);
  EXPECT_FALSE(partial.isometry);
  EXPECT_NEAR(partial.matrix.norm().item<double>(), 3, 1e-5);
  for (const auto rank : {Rank::kComplete, Rank::kArbitrary}) {
    const auto map = solve("procrustes", problem, {.rank = rank});
    EXPECT_EQ(map.rank, 9);
    EXPECT_EQ(map.completed, 11);
    EXPECT_TRUE(map.isometry);
    EXPECT_LT(
        distance(map.matrix.matmul(partial.matrix.t()), partial.matrix.matmul(partial.matrix.t())),
        1e-6);
  }
}

TEST(Methods, OntoTheSameModelCompletionIsTheIdentity) {
  const auto rows = gaussian(500, 13, 1) * at::logspace(0, -2, 13, 10.0, at::kDouble);
  const auto basis = orthonormal(50, 13, 2);
  auto problem = problem_of(rows, rows);
  problem.source_width = problem.target_width = 50;
  problem.source_basis = problem.target_basis = basis;
  problem.prior = at::eye(50);
  const auto map = solve("procrustes", problem);
  EXPECT_LT(distance(map.matrix, at::eye(50)), 1e-10);
  EXPECT_EQ(map.completed, 37);
}

TEST(Methods, ThePriorFillsAPlantedRepetition) {
  at::manual_seed(3);
  const auto order = at::eye(20, at::kDouble).index_select(0, at::randperm(20));
  const auto repetition = at::cat({order, order}, 1) / std::sqrt(2.0);  // [20, 40]
  const auto source = gaussian(100, 6, 1).matmul(gaussian(6, 20, 2));   // rank 6
  auto problem = problem_of(source, source.matmul(repetition));
  problem.prior = repetition.to(at::kFloat);
  EXPECT_LT(distance(solve("procrustes", problem).matrix, repetition), 1e-7);
}

TEST(Methods, IsometriesOfLargeSpacesHoldInFloat32) {
  const auto source = gaussian(1500, 1100, 1);
  const auto problem = problem_of(source, source.matmul(orthonormal(1150, 1100, 2).t()));
  const auto map = solve("procrustes", problem);
  EXPECT_LT(map.orthogonality, 1e-6);
  EXPECT_LT(map.asymmetry, 1e-6);
  EXPECT_EQ(map.rank, 1100);
}

TEST(DataFree, OntoTheSameModelIsTheIdentity) {
  const auto weights = gaussian(20, 60, 1);
  const auto problem = problem_of(weights.t(), weights.t());
  EXPECT_LT(distance(solve("data-free", problem).matrix, at::eye(20)), 1e-6);
}

TEST(DataFree, SeesThroughAPermutationOfUnits) {
  const auto weights = gaussian(20, 60, 1);
  const auto order = at::eye(20, at::kDouble).index_select(0, at::randperm(20));
  const auto problem = problem_of(weights.t(), weights.t().matmul(order));
  EXPECT_LT(distance(solve("data-free", problem).matrix, order), 1e-6);
}

TEST(Permutation, IsRecovered) {
  at::manual_seed(5);
  const auto weights = gaussian(40, 30, 1);
  const auto order = at::eye(40, at::kDouble).index_select(0, at::randperm(40));
  const auto problem = problem_of(weights.t(), weights.t().matmul(order));
  EXPECT_EQ(distance(solve("permutation", problem).matrix, order), 0);
}

// Units 0..11 in four heads; the heads move as wholes, units within them too or not.
at::Tensor head_order(bool rigid) {
  at::manual_seed(6);
  const auto heads = at::tensor({2, 0, 3, 1}, at::kLong);
  std::vector<at::Tensor> units;
  for (int64_t i = 0; i < 4; ++i) {
    units.push_back(heads[i] * 3 + (rigid ? at::arange(3) : at::randperm(3)));
  }
  return at::eye(12, at::kDouble).index_select(0, at::cat(units));
}

TEST(Permutation, KeepsHeadsTogether) {
  for (const bool rigid : {false, true}) {
    const auto order = head_order(rigid);
    const auto weights = gaussian(12, 5, 1);
    const auto noisy = weights.t().matmul(order) + 0.2 * gaussian(5, 12, 2);
    auto problem = problem_of(weights.t(), noisy);
    problem.source_heads = problem.target_heads = 4;
    problem.rigid_heads = rigid;
    EXPECT_EQ(distance(solve("permutation", problem).matrix, order), 0) << rigid;
  }
}

TEST(Permutation, RefusesOtherHeads) {
  auto problem = problem_of(gaussian(20, 12, 1), gaussian(20, 12, 2));
  problem.source_heads = 4;
  problem.target_heads = 3;
  tests::expect_parts(tests::error_of([&] { solve("permutation", problem); }), "heads", "4", "3");
}

TEST(Methods, NeedGramsToWhiten) {
  const auto& procrustes = method("procrustes");
  EXPECT_FALSE(needs_of(procrustes, {}).source_gram);
  EXPECT_TRUE(needs_of(procrustes, {.whiten = 0.25}).source_gram);
  EXPECT_TRUE(needs_of(procrustes, {.whiten = 0.25}).target_gram);
  tests::expect_parts(
      tests::error_of([] { needs_of(method("linear"), {.whiten = 0.25}); }), "does not whiten");
  tests::expect_parts(
      tests::error_of([&] { needs_of(procrustes, {.whiten = 0.7}); }), "0.7", "0.5");
  tests::expect_parts(tests::error_of([&] { needs_of(procrustes, {.ridge = -1}); }), "ridge", "-1");
}

}  // namespace
}  // namespace theseus::maps
