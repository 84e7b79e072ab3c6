#include "theseus/evaluate/score.h"

#include <cmath>

#include <gtest/gtest.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/rouge.h"

#include "tests/support/expect_error.h"

namespace theseus::evaluate {
namespace {

// From the formula, by hand: p = 0.8, n = 50, z = 1.96.
TEST(Score, AccuracyHasWilsonsInterval) {
  const auto score = accuracy(40, 50);
  EXPECT_DOUBLE_EQ(score.value, 0.8);
  EXPECT_NEAR(score.low, 0.66964, 1e-4);
  EXPECT_NEAR(score.high, 0.88756, 1e-4);
  EXPECT_EQ(score.count, 50);
  EXPECT_EQ(accuracy(0, 10).low, 0);
  EXPECT_NEAR(accuracy(0, 10).high, 0.27753, 1e-4);
  EXPECT_EQ(accuracy(10, 10).high, 1);
  tests::error_of<InputError>([] { accuracy(0, 0); });
}

TEST(Score, MeansHaveTheNormalInterval) {
  const auto score = mean_score("rouge_l", 1 + 2 + 3, 1 + 4 + 9, 3);  // variance 1
  EXPECT_DOUBLE_EQ(score.value, 2);
  EXPECT_NEAR(score.high - score.value, 1.959964 / std::sqrt(3.0), 1e-6);
}

// F1 of the longest common subsequence, by hand.
TEST(Rouge, IsOfTheLongestCommonSubsequence) {
  EXPECT_DOUBLE_EQ(rouge_l("the cat sat", "The cat sat."), 1);
  EXPECT_DOUBLE_EQ(rouge_l("police killed the gunman", "police kill the gunman"), 0.75);
  EXPECT_DOUBLE_EQ(rouge_l("the gunman kill police", "police kill the gunman"), 0.5);
  EXPECT_DOUBLE_EQ(rouge_l("a b c d", "b d"), 2 * 2.0 / 6);
  EXPECT_DOUBLE_EQ(rouge_l("", "a"), 0);
  EXPECT_DOUBLE_EQ(rouge_l("x", "y"), 0);
}

}  // namespace
}  // namespace theseus::evaluate
