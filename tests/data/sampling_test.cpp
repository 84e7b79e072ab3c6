#include "theseus/data/sampling.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "theseus/data/shuffle.h"

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;

// 60 examples of classes of 10, 20 and 30.
Examples three_classes() {
  Examples examples;
  examples.source = "folders";
  examples.split = "train";
  examples.classes = {"a", "b", "c"};
  for (int64_t i = 0; i < 60; ++i) {
    examples.names.push_back("/somewhere/" + std::to_string(i) + ".png");
    examples.labels.push_back(i < 10 ? 0 : i < 30 ? 1 : 2);
  }
  return examples;
}

TEST(Random, IsSplitMix64) {
  // The first numbers of the published generator with seed 1234567.
  Random random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(Random, BelowIsEven) {
  Random random(0);
  std::vector<int> counts(6);
  for (int i = 0; i < 60000; ++i) {
    ++counts[random.below(6)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 10000, 400);  // four standard deviations
  }
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, EveryOrderIsAsLikely) {
  Random random(5);
  std::map<std::vector<int>, int> counts;
  for (int i = 0; i < 12000; ++i) {
    std::vector<int> items = {0, 1, 2, 3};
    shuffle_front(items, 2, random);
    ++counts[{items[0], items[1]}];
  }
  EXPECT_EQ(counts.size(), 12U);
  for (const auto& [order, count] : counts) {
    EXPECT_NEAR(count, 1000, 130);
  }
}

TEST(DrawBatches, DrawsWithoutReplacement) {
  const auto examples = three_classes();
  const auto draw = draw_batches(examples, 4, 15, 3);
  const std::set<int64_t> distinct(draw.order.begin(), draw.order.end());
  EXPECT_EQ(distinct.size(), 60U);
  EXPECT_EQ(*distinct.rbegin(), 59);
  EXPECT_FALSE(std::ranges::is_sorted(draw.order));
  EXPECT_EQ(draw_batches(examples, 4, 15, 3).order, draw.order);
  EXPECT_NE(draw_batches(examples, 4, 15, 4).order, draw.order);
}

TEST(DrawBatches, FewerBatchesAreTheFirstOfMore) {
  const auto examples = three_classes();
  const auto many = draw_batches(examples, 4, 10, 7).order;
  const auto few = draw_batches(examples, 1, 10, 7).order;
  EXPECT_EQ(few, std::vector<int64_t>(many.begin(), many.begin() + 10));
}

TEST(DrawBatches, IsTheSameEverywhere) {
  EXPECT_EQ(
      draw_batches(three_classes(), 1, 6, 0).order, (std::vector<int64_t>{55, 46, 37, 7, 0, 20}));
}

TEST(DrawBatches, RefusesMoreThanThereIs) {
  const auto examples = three_classes();
  expect_parts(
      error_of([&] { draw_batches(examples, 4, 16, 0); }), "4 batches of 16", "60 examples");
  expect_parts(error_of([&] { draw_batches(examples, 0, 16, 0); }), "at least 1");
  expect_parts(error_of([&] { draw_batches(examples, int64_t{1} << 62, 16, 0); }), "60 examples");
}

TEST(DrawPerClass, TakesAsManyOfEach) {
  const auto examples = three_classes();
  const auto draw = draw_per_class(examples, 10, 1);
  ASSERT_EQ(draw.order.size(), 30U);
  std::vector<int> counts(3);
  for (const auto index : draw.order) {
    ++counts[examples.labels[index]];
  }
  EXPECT_EQ(counts, (std::vector<int>{10, 10, 10}));
  EXPECT_EQ(std::set<int64_t>(draw.order.begin(), draw.order.end()).size(), 30U);
  // Mixed: not one class after the other.
  EXPECT_FALSE(std::ranges::is_sorted(
      draw.order, {}, [&](int64_t index) { return examples.labels[index]; }));
}

TEST(DrawPerClass, TakesAllOfClassesWithTooFewAndNamesThem) {
  auto examples = three_classes();
  EXPECT_EQ(draw_per_class(examples, 10, 1).fewer, "");
  examples.classes.emplace_back("never seen");
  const auto draw = draw_per_class(examples, 25, 1);
  EXPECT_EQ(draw.order.size(), 10U + 20U + 25U);
  expect_parts(draw.fewer, "--shots 25", "a (10)", "b (20)", "never seen (0)");
  examples.classes.clear();
  expect_parts(draw_per_class(examples, 11, 1).fewer, "class 0 (10)");
  examples.labels.clear();
  expect_parts(error_of([&] { draw_per_class(examples, 1, 1); }), "no labels");
}

TEST(Draw, HashIsOfWhatWasDrawn) {
  auto examples = three_classes();
  const auto hash = draw_batches(examples, 2, 8, 1).hash;
  EXPECT_EQ(hash.size(), 5U + 32U);
  auto moved = examples;
  for (auto& name : moved.names) {
    name = "/another/place/" + name.substr(name.rfind('/') + 1);
  }
  EXPECT_EQ(draw_batches(moved, 2, 8, 1).hash, hash);
  EXPECT_NE(draw_batches(examples, 2, 8, 2).hash, hash);
  for (auto& label : moved.labels) {
    label = 2 - label;
  }
  EXPECT_NE(draw_batches(moved, 2, 8, 1).hash, hash);
}

TEST(Draw, Describes) {
  const auto examples = three_classes();
  const auto shots = draw_per_class(examples, 2, 9);
  EXPECT_EQ(
      describe(shots, examples).dump(),
      R"({"source":"folders","split":"train","drawn":"per class","per_class":2,"classes":3,)"
      R"("examples":6,"available":60,"seed":9,"hash":")" +
          shots.hash + "\"}");
  const auto batches = describe(draw_batches(examples, 3, 2, 9), examples);
  EXPECT_EQ(batches["batches"], 3);
  EXPECT_EQ(batches["batch_size"], 2);
  EXPECT_EQ(batches["examples"], 6);
}

}  // namespace
}  // namespace theseus::data
