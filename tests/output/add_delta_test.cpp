#include "theseus/output/add_delta.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::output {
namespace {

TEST(AddDelta, IsTheSumRoundedOnce) {
  at::manual_seed(7);
  const auto delta = at::randn({3, 70'001});  // more than one chunk, and a part of one
  for (const auto dtype : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const auto base = at::randn({3, 70'001}).to(dtype);
    const auto sum = add_delta(base, delta, 0.25);
    const auto expected = (base.to(at::kFloat) + 0.25F * delta).to(dtype);
    EXPECT_TRUE(at::equal(sum.value, expected)) << dtype;
    const auto step = 0.25 * delta.to(at::kDouble);
    const auto lost = step - (expected.to(at::kDouble) - base.to(at::kDouble));
    EXPECT_NEAR(sum.addition.norm_squared / step.square().sum().item<double>(), 1, 1e-12);
    EXPECT_NEAR(sum.addition.lost_squared / lost.square().sum().item<double>(), 1, 1e-12) << dtype;
    EXPECT_TRUE(sum.finite);
  }
}

TEST(AddDelta, MayBeStoredInAnotherDtype) {
  at::manual_seed(8);
  const auto delta = at::randn({3, 70'001}) * 1e-3F;
  for (const auto from : {at::kFloat, at::kHalf, at::kBFloat16}) {
    for (const auto to : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const auto base = at::randn({3, 70'001}).to(from);
      const auto sum = add_delta(base, delta, 0.5, to);
      const auto expected = (base.to(at::kFloat) + 0.5F * delta).to(to);
      EXPECT_TRUE(at::equal(sum.value, expected)) << from << " to " << to;
      const auto there = (expected.to(at::kDouble) - base.to(at::kDouble)).square().sum();
      EXPECT_NEAR(sum.addition.arrived_squared / there.item<double>(), 1, 1e-12);
      const auto whole = base.to(at::kDouble).square().sum().item<double>();
      EXPECT_NEAR(sum.addition.base_squared / whole, 1, 1e-12);
    }
  }
  tests::expect_parts(
      tests::error_of([] { add_delta(at::ones({1}, at::kDouble), at::ones({1}), 1, at::kHalf); }),
      "Double", "Half");
}

TEST(AddDelta, Float64StaysFloat64) {
  const auto base = at::full({2}, 1e-12, at::kDouble);
  EXPECT_TRUE(at::equal(add_delta(base, at::ones({2}), 1).value, base + 1));
}

TEST(AddDelta, NothingAddedKeepsTheBits) {
  const auto base = at::tensor({-0.0F, 0.0F});
  const auto sum = add_delta(base, at::zeros({2}), 3);
  EXPECT_TRUE(std::signbit(sum.value[0].item<float>()));
  EXPECT_FALSE(std::signbit(sum.value[1].item<float>()));
  EXPECT_EQ(sum.addition.norm_squared, 0);
}

TEST(AddDelta, TakesAnyStridesAndScalars) {
  const auto base = at::arange(6.0F).reshape({2, 3});
  EXPECT_TRUE(at::equal(add_delta(base.t(), base.t(), 1).value, 2 * base.t()));
  EXPECT_EQ(add_delta(at::ones({}), at::ones({}), 2).value.item<float>(), 3);
  EXPECT_EQ(add_delta(at::ones({0, 3}), at::ones({0, 3}), 2).value.numel(), 0);
}

TEST(AddDelta, ThreadsChangeNothing) {
  at::manual_seed(8);
  const auto base = at::randn({1'000'003});
  const auto delta = at::randn({1'000'003});
  const int threads = at::get_num_threads();
  const auto many = add_delta(base, delta, 0.1);
  at::set_num_threads(1);
  const auto one = add_delta(base, delta, 0.1);
  at::set_num_threads(threads);
  EXPECT_EQ(many.addition.norm_squared, one.addition.norm_squared);
  EXPECT_EQ(many.addition.lost_squared, one.addition.lost_squared);
  EXPECT_TRUE(at::equal(many.value, one.value));
}

TEST(AddDelta, RefusesOtherDtypes) {
  tests::expect_parts(
      tests::error_of([] { add_delta(at::ones({1}, at::kLong), at::ones({1}), 1); }), "Long",
      "float32");
}

}  // namespace
}  // namespace theseus::output
