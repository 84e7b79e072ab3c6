#include "theseus/stats/matcher.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job.h"

namespace theseus::stats {
namespace {

constexpr int64_t kSequences = 3;

const Matcher& matcher(std::string_view name) {
  return find_plugin(all_matchers(), "matcher", name);
}

at::Tensor drawn(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

Sequences image(int64_t grid, int64_t width, uint64_t seed) {
  return {.rows = drawn({kSequences, grid * grid + 1, width}, seed), .grid = grid};
}

// The last two tokens of sequence 1 and the last of sequence 2 are padding. The first token stands for no
// text, the others for equal shares of 63 bytes.
Sequences text(int64_t tokens, int64_t width, uint64_t seed) {
  const auto lengths = at::tensor({tokens, tokens - 2, tokens - 1}).unsqueeze(1);
  return {
      .rows = drawn({kSequences, tokens, width}, seed),
      .kept = at::arange(tokens).unsqueeze(0).lt(lengths),
      .spans =
          at::stack(
              {at::arange(tokens) * (63 / tokens), (at::arange(tokens) + 1) * (63 / tokens)}, -1)
              .index_fill(0, at::tensor({int64_t{0}}), 0)
              .expand({kSequences, tokens, 2})};
}

// Every kind of pair that the matcher takes.
std::vector<std::pair<Sequences, Sequences>> pairs_for(const std::string& name) {
  if (name == "offsets") {
    return {{text(7, 6, 1), text(7, 5, 2)}, {text(7, 6, 1), text(9, 5, 2)}};
  }
  std::vector<std::pair<Sequences, Sequences>> pairs = {{image(4, 6, 1), image(4, 5, 2)}};
  if (name != "grid") {
    pairs.emplace_back(text(7, 6, 1), text(7, 5, 2));
  }
  if (name == "mean" || name == "cls") {
    pairs.emplace_back(text(7, 6, 1), text(9, 5, 2));
  }
  if (name != "text") {
    pairs.emplace_back(image(3, 6, 1), image(5, 5, 2));
    pairs.emplace_back(image(5, 6, 1), image(2, 5, 2));
  }
  return pairs;
}

// The weights with which rows are means of tokens sum to one, or constants would not stay.
TEST(EveryMatcher, KeepsConstantRows) {
  for (const auto& [name, plugin] : all_matchers()) {
    for (auto [source, target] : pairs_for(std::string(name))) {
      source.rows = drawn({6}, 3).expand_as(source.rows).clone();
      const auto paired = plugin->match(source, target);
      ASSERT_EQ(paired.source.size(0), paired.target.size(0)) << name;
      // Float32 weights.
      EXPECT_LT(tests::frobenius_error(paired.source, drawn({6}, 3).expand_as(paired.source)), 1e-6)
          << name;
    }
  }
}

TEST(EveryMatcher, IsLinearInTheTokens) {
  for (const auto& [name, plugin] : all_matchers()) {
    for (const auto& [source, target] : pairs_for(std::string(name))) {
      auto other = source, sum = source;
      other.rows = drawn(source.rows.sizes(), 9);
      sum.rows = 2 * source.rows - 3 * other.rows;
      const auto match = [&match = *plugin->match, &target = target](const Sequences& one) {
        return match(one, target).source;
      };
      EXPECT_LT(tests::frobenius_error(match(sum), 2 * match(source) - 3 * match(other)), 1e-6)
          << name;
    }
  }
}

TEST(EveryMatcher, PairsAModelWithItself) {
  for (const auto& [name, plugin] : all_matchers()) {
    for (const auto& [source, target] : pairs_for(std::string(name))) {
      const auto paired = plugin->match(source, source);
      EXPECT_TRUE(at::equal(paired.source, paired.target)) << name;
    }
  }
}

// What stands in padding does not matter.
TEST(EveryMatcher, LeavesPaddingOut) {
  for (const auto& [name, plugin] : all_matchers()) {
    if (plugin->images_only) {
      continue;
    }
    const auto source = text(7, 6, 1), target = text(7, 5, 2);
    auto other = source;
    other.rows = at::where(source.kept.unsqueeze(-1), source.rows, 1e6);
    const auto first = plugin->match(source, target), second = plugin->match(other, target);
    EXPECT_TRUE(at::equal(first.source, second.source)) << name;
    const auto expected = name == "mean" || name == "cls" ? kSequences : 7 + 5 + 6;
    EXPECT_EQ(first.target.size(0), expected) << name;
  }
}

TEST(Grid, IsBilinear) {
  // A 2 x 2 grid [0 1; 2 3] onto 4 x 4, corners not aligned: places -0.25, 0.25, 0.75, 1.25 of the
  // source, clamped to [0, 1], so that weights along a side are 0, 0.25, 0.75, 1.
  const Sequences source{
      .rows = at::tensor({9.0F, 0.0F, 1.0F, 2.0F, 3.0F}).view({1, 5, 1}), .grid = 2};
  const Sequences target{.rows = at::zeros({1, 17, 1}), .grid = 4};
  const auto found = matcher("grid").match(source, target).source;
  ASSERT_EQ(found.size(0), 17);
  EXPECT_EQ(found[0].item<float>(), 9);  // class token with class token
  const double along[] = {0, 0.25, 0.75, 1};
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 4; ++x) {
      EXPECT_FLOAT_EQ(
          found[1 + 4 * y + x].item<float>(), static_cast<float>(along[x] + 2 * along[y]))
          << y << " " << x;
    }
  }
}

TEST(Grid, NeedsImages) {
  const auto error = [](const Sequences& source, const Sequences& target) {
    return tests::error_of([&] { matcher("grid").match(source, target); });
  };
  tests::expect_parts(error(text(7, 6, 1), image(3, 5, 2)), "grid", "source", "7 tokens");
  auto headless = image(3, 5, 2);
  headless.rows = headless.rows.narrow(1, 0, 9);
  tests::expect_parts(error(image(3, 6, 1), headless), "target", "9 tokens", "class token");
}

at::Tensor spans(const std::vector<std::vector<int64_t>>& pairs) {
  std::vector<at::Tensor> rows;
  for (const auto& pair : pairs) {
    rows.push_back(at::tensor(pair, at::kLong));
  }
  return at::stack(rows).unsqueeze(0);
}

// "[CLS] play ##ing tennis [SEP]" against "<s> pl aying ten nis </s>": rows are means by shared bytes.
TEST(Offsets, PairsByTheTextTokensStandFor) {
  const Sequences source{
      .rows = at::tensor({10.0F, 1.0F, 2.0F, 4.0F, 20.0F}).view({1, 5, 1}),
      .spans = spans({{0, 0}, {0, 4}, {4, 7}, {8, 14}, {0, 0}})};
  const Sequences target{
      .rows = at::arange(6, at::kFloat).view({1, 6, 1}),
      .spans = spans({{0, 0}, {0, 2}, {2, 7}, {8, 11}, {11, 14}, {0, 0}})};
  const auto paired = matcher("offsets").match(source, target);
  EXPECT_TRUE(at::equal(paired.target, at::arange(6, at::kFloat).view({6, 1})));
  const auto expected = at::tensor({10.0F, 1.0F, (2 * 1.0F + 3 * 2.0F) / 5, 4.0F, 4.0F, 20.0F});
  EXPECT_TRUE(at::allclose(paired.source.flatten(), expected));
}

// Text that one side lacks (cut off, or thrown away by its tokenizer) is left out, as is an end that is
// text on one side only.
TEST(Offsets, LeavesOutWhatTheOtherLacks) {
  const Sequences source{
      .rows = at::tensor({1.0F, 2.0F, 3.0F}).view({1, 3, 1}),
      .spans = spans({{0, 3}, {4, 5}, {0, 0}})};
  const Sequences target{
      .rows = at::tensor({7.0F, 8.0F, 9.0F, 6.0F}).view({1, 4, 1}),
      .spans = spans({{0, 0}, {0, 3}, {3, 4}, {6, 9}})};
  const auto paired = matcher("offsets").match(source, target);
  EXPECT_TRUE(at::equal(paired.source, at::tensor({1.0F}).view({1, 1})));
  EXPECT_TRUE(at::equal(paired.target, at::tensor({8.0F}).view({1, 1})));
}

TEST(Offsets, NeedsSpansThatMeet) {
  const auto error = [](const Sequences& source, const Sequences& target) {
    return tests::error_of([&] { matcher("offsets").match(source, target); });
  };
  auto bare = text(7, 6, 1);
  bare.spans = at::Tensor();
  tests::expect_parts(error(bare, text(7, 5, 2)), "offsets", "source", "give texts");
  const Sequences left{.rows = at::zeros({1, 1, 1}), .spans = spans({{0, 3}})};
  const Sequences right{.rows = at::zeros({1, 1, 1}), .spans = spans({{3, 5}})};
  tests::expect_parts(error(left, right), "no token of the source shares text");
}

TEST(Linear, ResamplesToTheTargetsLength) {
  const Sequences source{.rows = at::tensor({0.0F, 1.0F, 2.0F}).view({1, 3, 1})};
  const Sequences target{.rows = at::zeros({1, 6, 1})};
  // Places -0.25, 0.25, 0.75, 1.25, 1.75, 2.25, clamped to [0, 2].
  const auto expected = at::tensor({0.0F, 0.25F, 0.75F, 1.25F, 1.75F, 2.0F}).view({6, 1});
  EXPECT_TRUE(at::allclose(matcher("linear").match(source, target).source, expected));
  tests::expect_parts(
      tests::error_of([] { matcher("linear").match(text(7, 6, 1), text(9, 5, 2)); }), "padded",
      "mean");
}

TEST(Tokens, PairOnlyWithTheSameLengthAndPadding) {
  const auto error = [](const Sequences& source, const Sequences& target) {
    return tests::error_of([&] { matcher("text").match(source, target); });
  };
  tests::expect_parts(error(text(7, 6, 1), text(9, 5, 2)), "7 tokens", "of 9");
  auto left = text(7, 5, 2);
  left.kept = left.kept.flip(1);
  tests::expect_parts(error(text(7, 6, 1), left), "padded at different places");
  Sequences whole = text(7, 5, 2);
  whole.kept = at::Tensor();
  tests::expect_parts(error(text(7, 6, 1), whole), "padded at different places");
}

TEST(Cls, RefusesSequencesThatBeginWithPadding) {
  auto left = text(7, 5, 2);
  left.kept = left.kept.flip(1);
  tests::expect_parts(
      tests::error_of([&] { matcher("cls").match(text(7, 6, 1), left); }), "begin with padding");
}

TEST(Mean, IsTheMeanOfTheRealTokens) {
  const auto source = text(7, 6, 1);
  const auto found = matcher("mean").match(source, text(7, 5, 2)).source;
  EXPECT_TRUE(at::allclose(found[1], source.rows[1].narrow(0, 0, 5).mean(0), 1e-5, 1e-6));
}

}  // namespace
}  // namespace theseus::stats
