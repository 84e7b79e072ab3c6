#include "theseus/maps/complete.h"

#include <cmath>

#include <gtest/gtest.h>

#include "theseus/maps/certify.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;

struct Case {
  int64_t ds;
  int64_t dt;
  int64_t r;
};

constexpr Case kCases[] = {{30, 40, 12}, {40, 30, 12}, {30, 30, 12}, {30, 30, 29}, {30, 33, 29},
                           {2, 1, 0},    {1, 1, 0},    {5, 9, 1},    {64, 96, 60}};

// The polar factor of (I - L L^T) P (I - R R^T), with bases of the complements.
at::Tensor by_complements(const at::Tensor& l, const at::Tensor& r, const at::Tensor& p) {
  const auto basis = [](const at::Tensor& columns) {
    return std::get<0>(at::linalg_svd(columns, true)).slice(1, columns.size(1));
  };
  const auto ns = basis(l);
  const auto nt = basis(r);
  const auto [u, s, vt] = at::linalg_svd(ns.t().matmul(p).matmul(nt), false);
  return l.matmul(r.t()) + ns.matmul(u).matmul(vt).matmul(nt.t());
}

TEST(Complete, IsThePolarFactorOfThePriorOnTheComplements) {
  for (const auto& [ds, dt, r] : kCases) {
    if (r == 0) {
      continue;
    }
    SCOPED_TRACE(testing::Message() << ds << " x " << dt << ", rank " << r);
    const auto left = orthonormal(ds, r, 1);
    const auto right = orthonormal(dt, r, 2);
    const auto wide = orthonormal(std::max(ds, dt), std::min(ds, dt), 3);
    const auto prior = ds <= dt ? wide.t() : wide;
    const auto map = complete(left, right, prior);
    EXPECT_LT(orthogonality(map), 1e-12);
    EXPECT_LT(distance(left.t().matmul(map), right.t()), 1e-12);
    EXPECT_LT(distance(map, by_complements(left, right, prior)), 1e-10);
  }
}

TEST(Complete, GivesAnIsometryFromNothing) {
  for (const auto& [ds, dt, r] : kCases) {
    const auto left = orthonormal(ds, r, 4);
    const auto right = orthonormal(dt, r, 5);
    const auto map = complete(left, right, {});
    SCOPED_TRACE(testing::Message() << ds << " x " << dt << ", rank " << r);
    EXPECT_LT(orthogonality(map), 1e-12);
    if (r > 0) {
      EXPECT_LT(distance(left.t().matmul(map), right.t()), 1e-12);
    }
    EXPECT_TRUE(at::equal(map, complete(left, right, {})));
  }
}

// The only direction left of one side is at right angles to the one that the identity would give it.
TEST(Complete, FillsWhatNoPriorReaches) {
  const auto unit = at::eye(64, at::kDouble);
  const auto left = unit.slice(1, 1);
  const auto right = at::cat({unit.slice(1, 0, 1), unit.slice(1, 2)}, 1);
  const auto map = complete(left, right, {});
  EXPECT_LT(orthogonality(map), 1e-12);
  EXPECT_LT(distance(left.t().matmul(map), right.t()), 1e-12);
  EXPECT_NEAR(std::abs(map[0][1].item<double>()), 1, 1e-12);
}

TEST(Complete, OntoTheSameIsTheIdentity) {
  const auto basis = orthonormal(50, 20, 1);
  EXPECT_LT(distance(complete(basis, basis, at::eye(50, at::kDouble)), at::eye(50)), 1e-12);
  EXPECT_LT(distance(complete(basis, basis, {}), at::eye(50)), 1e-12);
}

TEST(Complete, KeepsAPlantedRepetition) {
  const auto order = at::eye(40, at::kDouble).index_select(0, at::randperm(40));
  const auto prior = at::cat({order, order}, 1) / std::sqrt(2.0);  // [40, 80]
  const auto left = orthonormal(40, 10, 1);
  const auto right = prior.t().matmul(left);
  EXPECT_LT(distance(complete(left, right, prior), prior), 1e-12);
  EXPECT_LT(distance(complete(right, left, prior.t()), prior.t()), 1e-12);
}

TEST(Complete, WhatThePriorLeavesOpenIsFilledAllTheSame) {
  const auto eye = at::eye(12, at::kDouble);
  const auto left = eye.slice(1, 0, 4);   // units 0..3 ...
  const auto right = eye.slice(1, 4, 8);  // ... become 4..7, so the prior has no room for 4..7
  const auto map = complete(left, right, eye);
  EXPECT_LT(orthogonality(map), 1e-12);
  EXPECT_LT(distance(map.slice(0, 8), eye.slice(0, 8)), 1e-12);
  EXPECT_LT(distance(map.slice(0, 0, 4), right.t()), 1e-12);
}

TEST(Complete, APriorThatIsNoIsometryIsReplacedByTheNearest) {
  const auto left = orthonormal(20, 5, 1);
  const auto right = orthonormal(30, 5, 2);
  const auto prior = orthonormal(30, 20, 3).t();
  EXPECT_LT(distance(complete(left, right, 3 * prior), complete(left, right, prior)), 1e-10);
  const auto truncated = prior.matmul(right).matmul(right.t());  // rank 5
  EXPECT_LT(orthogonality(complete(left, right, truncated)), 1e-10);
}

TEST(Complete, InFloat32WhenLarge) {
  const auto left = orthonormal(1100, 300, 1);
  const auto right = orthonormal(1200, 300, 2);
  const auto prior = orthonormal(1200, 1100, 3).t().to(at::kFloat);
  const auto map = complete(left, right, prior);
  EXPECT_EQ(map.scalar_type(), at::kFloat);
  EXPECT_LT(orthogonality(map), 1e-6);
  EXPECT_LT(distance(left.t().to(at::kFloat).matmul(map), right.t()), 1e-6);
}

}  // namespace
}  // namespace theseus::maps
