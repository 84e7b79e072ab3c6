#include "theseus/transport/duration.h"

#include <gtest/gtest.h>

namespace theseus::transport {
namespace {

constexpr Rates kRates = {.passes = 1e11, .float32 = 1e11, .float64 = 5e10};

TEST(Duration, GrowsWithEveryKindOfWork) {
  const auto least = seconds_of({}, 0, kRates);
  EXPECT_GT(seconds_of({.forward = 1e13}, 0, kRates), least + 100);
  EXPECT_GT(seconds_of({.statistics = 1e13}, 0, kRates), least + 100);
  EXPECT_GT(seconds_of({.solve = 1e13}, 0, kRates), least + 100);
  EXPECT_GT(
      seconds_of({.solve = 1e13, .solve_small = 1e13}, 0, kRates),
      seconds_of({.solve = 1e13}, 0, kRates));
  EXPECT_GT(seconds_of({.carry = 1e13}, 0, kRates), least + 100);
  EXPECT_GT(seconds_of({}, int64_t{100'000'000'000}, kRates), least + 50);
}

TEST(Duration, HalvesOnAMachineTwiceAsFast) {
  const Cost cost = {.forward = 1e14, .statistics = 1e14, .solve = 1e14, .carry = 1e14};
  const Rates twice = {.passes = 2e11, .float32 = 2e11, .float64 = 1e11};
  EXPECT_NEAR(seconds_of(cost, 0, kRates) / seconds_of(cost, 0, twice), 2, 0.01);
}

TEST(Duration, CarryingCountsProductsWithMaps) {
  const model::Parameter from = {.shape = {3, 5}, .axes = {"mlp", "stream"}};
  const model::Parameter to = {.shape = {7, 11}, .axes = {"mlp", "stream"}};
  EXPECT_EQ(carrying_cost({{&from, &to, 0}}), 2 * (5 * 3 * 7 + 7 * 5 * 11));
  EXPECT_EQ(carrying_cost({{&from, &to, 2}}), 2 * (2 * 3 * 7 + 2 * 5 * 11));
  const model::Parameter table = {.shape = {9, 5}, .axes = {"<vocabulary>", "stream"}};
  const model::Parameter wider = {.shape = {9, 11}, .axes = {"<vocabulary>", "stream"}};
  EXPECT_EQ(carrying_cost({{&table, &wider, 0}}), 2 * 9 * 5 * 11);
}

TEST(Duration, RatesOfThisMachineAreMeasured) {
  const auto rates = measure_rates(c10::kCPU, c10::kFloat);
  EXPECT_EQ(rates.passes, rates.float32);
  EXPECT_GT(rates.float32, 1e7);
  EXPECT_GT(rates.float64, 1e7);
}

}  // namespace
}  // namespace theseus::transport
