#include "theseus/maps/polar.h"

#include <gtest/gtest.h>

#include "theseus/maps/certify.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;
using tests::planted;

struct Shape {
  int64_t m;
  int64_t n;
};

constexpr Shape kShapes[] = {{1, 1},   {1, 5},   {5, 1},   {2, 2},
                             {40, 40}, {40, 70}, {70, 40}, {200, 230}};

TEST(Polar, FindsThePlantedFactorAtEveryCondition) {
  for (const auto& [m, n] : kShapes) {
    for (const double condition : {1.0, 1e2, 1e4, 1e6}) {
      const auto [matrix, factor] = planted(m, n, condition, 7);
      const auto found = polar(matrix);
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", condition " << condition);
      EXPECT_EQ(found.rank, std::min(m, n));
      EXPECT_LT(distance(found.factor(), factor), 1e-9);
      EXPECT_LT(found.orthogonality, 1e-9);
      EXPECT_LT(found.asymmetry, 1e-9);
      if (std::min(m, n) > 1) {
        EXPECT_NEAR(found.condition / condition, 1, 1e-6);
      }
      EXPECT_EQ(found.route, "eigh");
    }
  }
}

TEST(Polar, ScaleDoesNotMatter) {
  const auto [matrix, factor] = planted(20, 30, 1e3, 3);
  for (const double scale : {1e-12, 1e12}) {
    EXPECT_LT(distance(polar(scale * matrix).factor(), factor), 1e-11);
  }
}

TEST(Polar, WhatIsBelowTheNoiseCountsAsZero) {
  const auto [matrix, factor] = planted(40, 50, 1e8, 11);
  const auto found = polar(matrix, {.share = 1e-7});
  const auto by_svd = polar_by_svd(matrix, {.share = 1e-7});
  EXPECT_EQ(found.rank, by_svd.rank);
  EXPECT_EQ(found.rank, 35);  // 10^(-8 i / 39) > 1e-7
  EXPECT_LT(distance(found.factor(), by_svd.factor()), 1e-8);
  EXPECT_LT(found.orthogonality, 1e-9);
}

TEST(Polar, AgreesWithTheSingularValueDecomposition) {
  for (const auto& [m, n] : kShapes) {
    const auto matrix = gaussian(m, n, 5);
    const auto by_svd = polar_by_svd(matrix);
    EXPECT_EQ(by_svd.route, "svd");
    EXPECT_LT(distance(polar(matrix).factor(), by_svd.factor()), 1e-11);
  }
}

TEST(Polar, OfALowRankMatrixIsAPartialIsometry) {
  for (const auto& [m, n] : {Shape{30, 50}, Shape{50, 30}, Shape{30, 30}}) {
    const auto u = orthonormal(m, 9, 1);
    const auto v = orthonormal(n, 9, 2);
    const auto found = polar(u.matmul(v.t()) * 3);
    EXPECT_EQ(found.rank, 9);
    EXPECT_LT(distance(found.factor(), u.matmul(v.t())), 1e-13);
    EXPECT_LT(orthogonality(found.left), 1e-13);
    EXPECT_LT(orthogonality(found.right), 1e-13);
    EXPECT_LT(distance(found.left.matmul(found.left.t()), u.matmul(u.t())), 1e-13);
  }
}

TEST(Polar, RoundingOfFloat32ProductsAddsNoRank) {
  const auto u = orthonormal(60, 20, 1);
  const auto v = orthonormal(80, 20, 2);
  const auto clean = (u * at::logspace(0, -3, 20, 10.0, at::kDouble)).matmul(v.t());
  const auto noise = 1e-9 * gaussian(60, 80, 3);  // norm 2e-8
  const auto found = polar(clean + noise, {.share = 1e-7});
  EXPECT_EQ(found.rank, 20);
  EXPECT_EQ(polar_by_svd(clean + noise, {.share = 1e-7}).rank, 20);
  EXPECT_LT(distance(found.factor(), u.matmul(v.t())), 1e-5);  // noise over the smallest value
}

// Rows whose last directions are nothing but errors: other errors must not make another factor.
TEST(Polar, ErrorsOfTheRowsAddNoRank) {
  constexpr int64_t kRows = 50, kTrue = 40, kSource = 80, kTarget = 100;
  constexpr double kError = 1e-5;  // of an entry
  const auto of = [&](int64_t width, uint64_t shape, uint64_t errors) {
    const auto known = gaussian(kRows, kTrue, 7) * at::logspace(0, -2, kTrue, 10.0, at::kDouble);
    const auto rows = known.matmul(orthonormal(width, kTrue, shape).t());
    return (rows + kError * gaussian(kRows, width, errors)).t();
  };
  const auto find = [&](uint64_t errors, bool told) {
    const auto s = of(kSource, 1, errors), r = of(kTarget, 2, errors + 1);
    Significance significance;
    if (told) {
      const auto error = kError * std::sqrt(kRows);
      significance.rounding = {s, r, error, error};
    }
    return polar(s.matmul(r.t()), significance);
  };
  EXPECT_EQ(find(10, false).rank, kRows);
  EXPECT_GT(distance(find(10, false).factor(), find(20, false).factor()), 1e-2);
  EXPECT_EQ(find(10, true).rank, kTrue);
  EXPECT_LT(distance(find(10, true).factor(), find(20, true).factor()), 1e-3);
}

TEST(Polar, OfZeroAndBelowTheFloorHasRankZero) {
  EXPECT_EQ(polar(at::zeros({3, 5}, at::kDouble)).rank, 0);
  EXPECT_EQ(polar(1e-4 * gaussian(3, 5, 1), {.floor = 1e-2}).rank, 0);
  EXPECT_EQ(polar_by_svd(at::zeros({3, 5}, at::kDouble)).rank, 0);
}

TEST(Polar, OfAPositiveMatrixIsTheIdentity) {
  const auto rows = gaussian(300, 60, 4) * at::logspace(0, -3, 60, 10.0, at::kDouble);
  const auto gram = rows.t().matmul(rows);  // condition 1e6
  EXPECT_LT(distance(polar(gram).factor(), at::eye(60, at::kDouble)), 1e-9);
}

TEST(Polar, IsTheSameEveryTime) {
  const auto matrix = planted(60, 80, 1e5, 9).matrix;
  EXPECT_TRUE(at::equal(polar(matrix).factor(), polar(matrix).factor()));
}

TEST(Certify, EstimatesOfLargeMatricesAreClose) {
  auto map = orthonormal(1100, 1050, 1).t().contiguous();
  EXPECT_LT(orthogonality(map), 1e-14);
  map.mul_(1.001);  // T T^T - I = 0.002001 I
  EXPECT_NEAR(orthogonality(map), 2.001e-3, 5e-5);
}

TEST(Certify, SeesAFactorThatIsNotSymmetric) {
  const auto [matrix, factor] = planted(30, 40, 10, 2);
  EXPECT_LT(asymmetry(matrix, factor), 1e-14);
  EXPECT_GT(asymmetry(matrix, orthonormal(40, 30, 8).t()), 0.1);
}

}  // namespace
}  // namespace theseus::maps
