#include "theseus/maps/halley.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/maps/certify.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;
using tests::planted;

TEST(Halley, FindsThePlantedFactor) {
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 6}, {40, 40}, {40, 70}, {300, 320}}) {
    for (const double condition : {1.0, 1e3, 1e5, 3e6}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", condition " << condition);
      const auto [matrix, factor] = planted(m, n, condition, 7);
      const auto found = find_polar_by_halley(1e5 * matrix);
      ASSERT_TRUE(found);
      EXPECT_LT(distance(found->factor, factor), 1e-14 * std::pow(condition, 4.0 / 3) + 1e-12);
      EXPECT_LT(orthogonality(found->factor), 1e-10);
      if (m > 1) {
        EXPECT_NEAR(found->largest / found->smallest / condition, 1, 0.1);
      }
    }
  }
}

TEST(Halley, OneLargeValueDoesNotMatter) {
  const auto u = orthonormal(200, 200, 1), v = orthonormal(220, 200, 2);
  auto values = at::logspace(0, -2, 200, 10.0, at::kDouble);
  values[0] = 300;
  const auto found = find_polar_by_halley((u * values).matmul(v.t()));
  ASSERT_TRUE(found);
  EXPECT_LT(distance(found->factor, u.matmul(v.t())), 1e-9);
}

TEST(Halley, LeavesWhatItCannotTellToOthers) {
  EXPECT_FALSE(find_polar_by_halley(at::zeros({5, 8}, at::kDouble)));
  EXPECT_FALSE(find_polar_by_halley(planted(40, 60, 1e9, 3).matrix));
  const auto low = gaussian(30, 10, 1).matmul(gaussian(10, 50, 2));
  EXPECT_FALSE(find_polar_by_halley(low));
}

}  // namespace
}  // namespace theseus::maps
