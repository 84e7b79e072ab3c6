#include "theseus/maps/rational.h"

#include <cmath>

#include <gtest/gtest.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/polar.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::planted;

TEST(Zolotarev, StaysBetweenWhatItReachesAndOne) {
  for (const double least : {0.9, 0.1, 1e-3, 1e-6}) {
    for (int64_t terms = 1; terms <= 5; ++terms) {
      const auto z = zolotarev(least, terms);
      SCOPED_TRACE(testing::Message() << least << ", " << terms << " terms");
      double smallest = 1;
      double largest = 0;
      for (int i = 0; i <= 1000; ++i) {
        const double value = z(std::pow(least, i / 1000.0));
        smallest = std::min(smallest, value);
        largest = std::max(largest, value);
      }
      EXPECT_NEAR(largest, 1, 1e-9);
      EXPECT_NEAR(smallest, z.reached, 1e-9);
      EXPECT_GT(z.reached, least);
      const double bound = 8 * std::exp(
                                   -(2 * static_cast<double>(terms) + 1) * std::pow(M_PI, 2) /
                                   (2 * std::log(4 / least)));
      EXPECT_LE(1 - z.reached, bound + 1e-14);
      for (const double weight : z.weights) {
        EXPECT_GT(weight, 0);
      }
    }
  }
}

TEST(Rational, FindsThePlantedFactor) {
  for (const double condition : {1.0, 1e2, 1e4, 1e5}) {
    const auto [matrix, factor] = planted(200, 260, condition, 3);
    const auto found = find_polar_by_rational(5 * matrix);
    ASSERT_TRUE(found) << condition;
    EXPECT_LT(distance(found->factor, factor), 2e-6) << condition;
    EXPECT_LT(orthogonality(found->factor), 5e-7) << condition;
    EXPECT_LT(asymmetry(matrix, found->factor), 5e-7) << condition;
    EXPECT_NEAR(found->condition / condition, 1, 0.1);
  }
}

TEST(Rational, HasNoAnswerWhereTheGramHasNone) {
  EXPECT_FALSE(find_polar_by_rational(planted(40, 50, 1e7, 3).matrix));
  EXPECT_FALSE(find_polar_by_rational(at::zeros({4, 5}, at::kDouble)));
}

TEST(Polar, OfLargeMatricesFallsBackWhenIllConditioned) {
  const auto good = planted(400, 1100, 1e4, 1);
  const auto fast = polar(good.matrix);
  EXPECT_EQ(fast.route, "rational");
  EXPECT_LT(distance(fast.factor(), good.factor), 2e-6);
  const auto bad = planted(400, 1100, 5e6, 1);
  const auto safe = polar(bad.matrix);
  EXPECT_EQ(safe.route, "eigh");
  EXPECT_LT(distance(safe.factor(), bad.factor), 1e-6);
  EXPECT_EQ(safe.rank, 400);
}

TEST(Polar, OfLargeMatricesSeesTheirRank) {
  const auto u = tests::orthonormal(400, 300, 1);
  const auto v = tests::orthonormal(1100, 300, 2);
  const auto found = polar(u.matmul(v.t()));
  EXPECT_EQ(found.route, "eigh");
  EXPECT_EQ(found.rank, 300);
  EXPECT_LT(distance(found.factor(), u.matmul(v.t())), 1e-12);
}

}  // namespace
}  // namespace theseus::maps
