#include "theseus/maps/halley.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "theseus/base/device.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/halley_mixed.h"

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

using tests::distance;
using tests::gaussian;
using tests::orthonormal;
using tests::planted;

TEST(Halley, FindsThePlantedFactor) {
  const PretendFastFloat64 fast;
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 6}, {40, 40}, {40, 70}, {300, 320}}) {
    for (const double condition : {1.0, 1e3, 1e5, 3e6, 2e9}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", condition " << condition);
      const auto [matrix, factor] = planted(m, n, condition, 7);
      const auto found = find_polar_by_halley(1e5 * matrix);
      ASSERT_TRUE(found);
      EXPECT_LT(distance(found->factor, factor), 1e-14 * condition + 1e-12);
      EXPECT_LT(orthogonality(found->factor), 1e-10);
      if (m > 1) {
        EXPECT_NEAR(found->largest / found->smallest / condition, 1, 0.1);
      }
    }
  }
}

// As on a GPU that is slow in float64.
TEST(Halley, FindsItByFactorsToo) {
  for (const auto& [m, n] : {std::pair{1, 1}, {1, 6}, {40, 40}, {40, 70}, {300, 320}}) {
    for (const double condition : {1.0, 1e3, 1e5, 3e6}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << ", condition " << condition);
      const auto [matrix, factor] = planted(m, n, condition, 7);
      const auto found = find_polar_by_halley(1e5 * matrix);
      ASSERT_TRUE(found);
      EXPECT_LT(distance(found->factor, factor), 1e-14 * std::pow(condition, 4.0 / 3) + 1e-12);
      EXPECT_LT(orthogonality(found->factor), 1e-10);
    }
  }
  EXPECT_FALSE(find_polar_by_halley(planted(40, 60, 1e9, 3).matrix));
}

TEST(Halley, OneLargeValueDoesNotMatter) {
  const PretendFastFloat64 fast;
  const auto u = orthonormal(200, 200, 1), v = orthonormal(220, 200, 2);
  auto values = at::logspace(0, -2, 200, 10.0, at::kDouble);
  values[0] = 300;
  const auto found = find_polar_by_halley((u * values).matmul(v.t()));
  ASSERT_TRUE(found);
  EXPECT_LT(distance(found->factor, u.matmul(v.t())), 1e-9);
}

TEST(Halley, LeavesWhatItCannotTellToOthers) {
  const PretendFastFloat64 fast;
  EXPECT_FALSE(find_polar_by_halley(at::zeros({5, 8}, at::kDouble)));
  EXPECT_FALSE(find_polar_by_halley(planted(40, 60, 1e11, 3).matrix));
  const auto low = gaussian(30, 10, 1).matmul(gaussian(10, 50, 2));
  EXPECT_FALSE(find_polar_by_halley(low));
}

// GPUs that are slow in float64 take the mixed one, so it must be right on those that are not, too.
TEST(Halley, IsTheSameOnAGpu) {
  if (!torch::cuda::is_available()) {
    GTEST_SKIP() << "no CUDA device";
  }
  const c10::Device gpu(c10::kCUDA, 0);
  for (const int64_t m : {int64_t{300}, kSmall + 6}) {
    const auto [matrix, factor] = planted(m, m + 40, 1e3, 7);
    const auto found = find_polar_by_halley(matrix.to(gpu));
    const auto mixed = find_polar_by_mixed_halley(matrix.to(gpu));
    ASSERT_TRUE(found && mixed);
    EXPECT_LT(distance(found->factor.cpu(), factor), 1e-10);
    EXPECT_LT(distance(mixed->factor.cpu(), factor), 1e-5);
    EXPECT_NEAR(found->largest / mixed->largest, 1, 0.01);
    EXPECT_NEAR(found->smallest / mixed->smallest, 1, 0.1);
  }
}

TEST(Halley, LargeOnesBeginWithARoundThatFactors) {
  for (const double condition : {10.0, 1e5}) {
    const auto [matrix, factor] = planted(kSmall + 6, kSmall + 40, condition, 7);
    const auto found = find_polar_by_halley(matrix);
    ASSERT_TRUE(found);
    EXPECT_LT(distance(found->factor, factor), 1e-14 * std::pow(condition, 4.0 / 3) + 1e-11);
    EXPECT_NEAR(found->largest / found->smallest / condition, 1, 0.1);
  }
  EXPECT_FALSE(find_polar_by_halley(planted(kSmall + 6, kSmall + 40, 1e9, 3).matrix));
}

}  // namespace
}  // namespace theseus::maps
