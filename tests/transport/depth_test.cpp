#include "theseus/transport/depth.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::transport {
namespace {

model::Architecture towers(const std::vector<int64_t>& depths) {
  model::Architecture architecture;
  for (size_t i = 0; i < depths.size(); ++i) {
    architecture.towers.push_back({.name = i == 0 ? "visual" : "text", .blocks = depths[i]});
  }
  return architecture;
}

at::Tensor random_scores(int64_t deep, int64_t shallow, uint64_t seed) {
  return at::rand({deep, shallow}, at::detail::createCPUGenerator(seed), at::kDouble);
}

// Each target block, in order, from its own stretched source block; shares of blocks add up to one.
void expect_block_by_block(const stats::Route& route, int64_t blocks) {
  ASSERT_EQ(route.source.size(), static_cast<size_t>(blocks));
  ASSERT_EQ(route.pairs.size(), static_cast<size_t>(blocks));
  for (int64_t i = 0; i < blocks; ++i) {
    const auto& pair = route.pairs[static_cast<size_t>(i)];
    EXPECT_EQ(pair.source, i);
    EXPECT_EQ(pair.target, i);
    EXPECT_EQ(pair.share, 1);
    double sum = 0;
    for (const auto& [block, share] : route.source[static_cast<size_t>(i)].parts) {
      sum += share;
    }
    EXPECT_DOUBLE_EQ(sum, 1);
  }
}

TEST(Depth, GoesBlockByBlockWhereDepthsAreEqual) {
  const auto route = make_route(towers({3}), towers({3}), Depth::kDivided, {});
  expect_block_by_block(route, 3);
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(route.source[static_cast<size_t>(i)].own());
    EXPECT_EQ(route.source[static_cast<size_t>(i)].run_as, i);
  }
  EXPECT_FALSE(depths_differ(towers({3, 2}), towers({3, 2})));
  EXPECT_TRUE(depths_differ(towers({3, 2}), towers({3, 1})));
}

TEST(Depth, StretchesTwelveToTwentyFourAsThePaperDoes) {
  const auto route = make_route(towers({12}), towers({24}), Depth::kStretch, {});
  expect_block_by_block(route, 24);
  for (int64_t i = 0; i < 12; ++i) {
    const auto& own = route.source[static_cast<size_t>(2 * i)];
    const auto& inserted = route.source[static_cast<size_t>(2 * i + 1)];
    EXPECT_TRUE(own.own());
    EXPECT_EQ(own.run_as, i);
    EXPECT_EQ(inserted.run_as, i);
    const std::vector<std::pair<int64_t, double>> mean = {{i, 0.5}, {i + 1, 0.5}};
    const std::vector<std::pair<int64_t, double>> copy = {{i, 1.0}};
    EXPECT_EQ(inserted.parts, i < 11 ? mean : copy);
  }
}

TEST(Depth, StretchesUnevenly) {
  using Parts = std::vector<std::pair<int64_t, double>>;
  const auto parts = [](int64_t from, int64_t to) {
    const auto route = make_route(towers({from}), towers({to}), Depth::kStretch, {});
    expect_block_by_block(route, to);
    std::vector<Parts> result;
    for (const auto& block : route.source) {
      result.push_back(block.parts);
    }
    return result;
  };
  EXPECT_EQ(
      parts(3, 5),
      (std::vector<Parts>{{{0, 1.0}}, {{1, 1.0}}, {{1, 0.5}, {2, 0.5}}, {{2, 1.0}}, {{2, 1.0}}}));
  const auto seven = parts(2, 7);
  ASSERT_EQ(seven.size(), 7U);
  for (size_t i = 1; i < 3; ++i) {  // two between, three after the last
    EXPECT_EQ(seven[i][0].first, 0);
    EXPECT_NEAR(seven[i][1].second, static_cast<double>(i) / 3, 1e-15);
  }
  for (size_t i = 3; i < 7; ++i) {
    EXPECT_EQ(seven[i], (Parts{{1, 1.0}}));
  }
}

TEST(Depth, RefusesToStretchToFewer) {
  tests::expect_parts(
      tests::error_of([] {
        make_route(towers({2, 4}), towers({2, 3}), Depth::kStretch, {});
      }),
      "text", "4", "3", "--depth divided");
}

// The greatest sum by trying every assignment.
double brute_force(const at::Tensor& scores, int64_t i, int64_t j) {
  const auto deep = scores.size(0), shallow = scores.size(1);
  const auto here = scores[i][j].item<double>();
  if (i + 1 == deep) {
    return j + 1 == shallow ? here : -1e9;
  }
  const auto stay = brute_force(scores, i + 1, j);
  return here + (j + 1 < shallow ? std::max(stay, brute_force(scores, i + 1, j + 1)) : stay);
}

TEST(Depth, AssignsInOrderWithTheGreatestSum) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (const auto& [deep, shallow] : {std::pair(1, 1), {4, 2}, {5, 5}, {7, 3}, {9, 4}, {6, 1}}) {
      const auto scores = random_scores(deep, shallow, seed);
      const auto assigned = monotone_assignment(scores);
      ASSERT_EQ(assigned.size(), static_cast<size_t>(deep));
      EXPECT_EQ(assigned.front(), 0);
      EXPECT_EQ(assigned.back(), shallow - 1);
      double sum = 0;
      for (size_t i = 0; i < assigned.size(); ++i) {
        sum += scores[static_cast<int64_t>(i)][assigned[i]].item<double>();
        if (i > 0) {
          EXPECT_GE(assigned[i], assigned[i - 1]);
          EXPECT_LE(assigned[i], assigned[i - 1] + 1);
        }
      }
      EXPECT_NEAR(sum, brute_force(scores, 0, 0), 1e-12) << deep << " onto " << shallow;
    }
  }
}

TEST(Depth, SharesASourceBlockAmongTheTargetsItServes) {
  const auto route = make_route(towers({2}), towers({5}), Depth::kDivided, random_scores(2, 5, 3));
  ASSERT_EQ(route.pairs.size(), 5U);
  std::map<int64_t, double> given;
  for (size_t i = 0; i < route.pairs.size(); ++i) {
    EXPECT_EQ(route.pairs[i].target, static_cast<int64_t>(i));
    given[route.pairs[i].source] += route.pairs[i].share;
  }
  ASSERT_EQ(given.size(), 2U);
  for (const auto& [block, sum] : given) {
    EXPECT_DOUBLE_EQ(sum, 1);
  }
}

TEST(Depth, RepeatsASourceBlockWhole) {
  const auto similarity = random_scores(2, 5, 3);
  const auto shared = make_route(towers({2}), towers({5}), Depth::kDivided, similarity);
  const auto route = make_route(towers({2}), towers({5}), Depth::kWhole, similarity);
  ASSERT_EQ(route.pairs.size(), 5U);
  for (size_t i = 0; i < route.pairs.size(); ++i) {
    EXPECT_EQ(route.pairs[i].source, shared.pairs[i].source);
    EXPECT_EQ(route.pairs[i].target, shared.pairs[i].target);
    EXPECT_EQ(route.pairs[i].share, 1);
  }
}

TEST(Depth, HasAWordForEachRule) {
  for (const auto depth : {Depth::kDivided, Depth::kWhole, Depth::kStretch}) {
    EXPECT_EQ(parse_depth(word_of(depth)), depth);
  }
  EXPECT_THROW(parse_depth("deep"), InputError);
}

TEST(Depth, SumsTheSourceBlocksThatServeOneTarget) {
  const auto route = make_route(towers({5}), towers({2}), Depth::kDivided, random_scores(5, 2, 4));
  ASSERT_EQ(route.pairs.size(), 5U);
  for (size_t i = 0; i < route.pairs.size(); ++i) {
    EXPECT_EQ(route.pairs[i].source, static_cast<int64_t>(i));
    EXPECT_EQ(route.pairs[i].share, 1);
  }
  EXPECT_EQ(route.pairs.front().target, 0);
  EXPECT_EQ(route.pairs.back().target, 1);
}

TEST(Depth, TreatsEachTowerByItself) {
  const auto similarity = random_scores(2 + 4, 4 + 2, 7);
  const auto route = make_route(towers({2, 4}), towers({4, 2}), Depth::kDivided, similarity);
  ASSERT_EQ(route.source.size(), 6U);
  ASSERT_EQ(route.pairs.size(), 8U);
  for (size_t i = 0; i < route.pairs.size(); ++i) {
    EXPECT_EQ(route.pairs[i].target < 4, i < 4);
    EXPECT_EQ(route.pairs[i].source < 2, i < 4);
  }
  const auto mixed = make_route(towers({2, 3}), towers({4, 3}), Depth::kStretch, {});
  expect_block_by_block(mixed, 7);
  EXPECT_EQ(mixed.source.back().run_as, 4);
}

}  // namespace
}  // namespace theseus::transport
