#include "theseus/machine/suggest.h"

#include <gtest/gtest.h>

namespace theseus::machine {
namespace {

const std::vector<std::string> kKnown = {"align", "evaluate", "plan", "transport"};

TEST(Suggest, FindsTheWordThatWasMeant) {
  EXPECT_EQ(closest("transprot", kKnown), "transport");
  EXPECT_EQ(closest("evalute", kKnown), "evaluate");
  EXPECT_EQ(closest("paln", kKnown), "plan");
}

TEST(Suggest, FindsNothingForAnotherWord) {
  EXPECT_EQ(closest("banana", kKnown), "");
  EXPECT_EQ(closest("", kKnown), "");
  EXPECT_EQ(closest(std::string(10'000, 'a'), kKnown), "");
}

TEST(Suggest, SaysWhatWasMeant) {
  EXPECT_EQ(did_you_mean("flaot32", " float32 bfloat16"), "; did you mean 'float32'?");
  EXPECT_EQ(did_you_mean("banana", "float32 bfloat16"), "");
  EXPECT_EQ(did_you_mean("x", ""), "");
}

}  // namespace
}  // namespace theseus::machine
