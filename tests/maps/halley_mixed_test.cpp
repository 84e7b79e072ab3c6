#include "theseus/maps/halley_mixed.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/polar.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;
using tests::planted;

// As a share of |T|.
double error_of(const at::Tensor& found, const at::Tensor& exact) {
  return ((found - exact).norm() / exact.norm()).item<double>();
}

TEST(HalleyMixed, ErrsLessThanRoundingTheMatrixToFloat32) {
  for (const auto& [m, n] : {std::pair{9, 9}, {40, 70}, {300, 520}}) {
    for (const double condition : {1.0, 1e1, 1e2, 1e3, 5e3}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", condition " << condition);
      const auto [matrix, factor] = planted(m, n, condition, 7);
      const auto found = find_polar_by_mixed_halley(1e5 * matrix);
      ASSERT_TRUE(found);
      EXPECT_EQ(found->factor.scalar_type(), at::kFloat);
      EXPECT_LT(orthogonality(found->factor), 5e-7);
      EXPECT_LT(asymmetry(matrix, found->factor), 1e-6);
      EXPECT_NEAR(found->largest / found->smallest / condition, 1, 0.15);
      const auto rounded = polar_by_svd(matrix.to(at::kFloat).to(at::kDouble)).factor();
      EXPECT_LT(error_of(found->factor, factor), error_of(rounded, factor) + 1e-6);
    }
  }
}

TEST(HalleyMixed, AFewLargeValuesDoNotMatter) {
  const auto u = orthonormal(300, 300, 1), v = orthonormal(350, 300, 2);
  for (const int64_t few : {1, 2, 5}) {
    auto values = at::logspace(0, -2.5, 300, 10.0, at::kDouble);
    for (int64_t i = 0; i < few; ++i) {
      values[i] = 1e3 * std::pow(4.0, static_cast<double>(i));
    }
    const auto found = find_polar_by_mixed_halley((u * values).matmul(v.t()));
    ASSERT_TRUE(found) << few;
    EXPECT_LT(error_of(found->factor, u.matmul(v.t())), 3e-6) << few;
  }
}

TEST(HalleyMixed, LeavesWhatItCannotTellToOthers) {
  EXPECT_FALSE(find_polar_by_mixed_halley(at::zeros({20, 30}, at::kDouble)));
  EXPECT_FALSE(find_polar_by_mixed_halley(planted(4, 6, 2, 3).matrix));
  EXPECT_FALSE(find_polar_by_mixed_halley(planted(40, 60, 1e5, 3).matrix));
  EXPECT_FALSE(find_polar_by_mixed_halley(gaussian(30, 10, 1).matmul(gaussian(10, 50, 2))));
}

TEST(HalleyMixed, IsTheSameOnEveryRun) {
  const auto matrix = planted(200, 240, 1e3, 5).matrix;
  const auto one = find_polar_by_mixed_halley(matrix);
  const auto other = find_polar_by_mixed_halley(matrix);
  ASSERT_TRUE(one && other);
  EXPECT_TRUE(at::equal(one->factor, other->factor));
}

TEST(HalleyMixed, IsTheRouteOfLargeMatricesThatAllowIt) {
  const auto rows = kSmall + 6;
  const auto matrix = gaussian(rows, rows + 400, 1);
  const auto found = polar(matrix);
  EXPECT_EQ(found.route, "halley-mixed");
  EXPECT_EQ(found.rank, rows);
  EXPECT_LT(found.orthogonality, 5e-7);
  EXPECT_LT(found.asymmetry, 5e-7);
  const auto turned = polar(matrix.t());
  EXPECT_EQ(distance(turned.factor(), found.factor().t()), 0);
  // The last row is the first again: of lower rank.
  matrix[rows - 1].copy_(matrix[0]);
  const auto low = polar(matrix);
  EXPECT_EQ(low.route, "eigh");
  EXPECT_EQ(low.rank, rows - 1);
  EXPECT_EQ(polar(matrix, {.most = rows - 2}).rank, rows - 2);
}

}  // namespace
}  // namespace theseus::maps
