#include "theseus/output/output_dtype.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::output {
namespace {

// Where nothing was learnt, no dtype is to blame.
TEST(OutputDtype, RoundingIsNamedWhereItIsTheCause) {
  const auto none =
      tests::error_of([] { require_learnt({.norm_squared = 0, .base_squared = 9}, at::kFloat); });
  tests::expect_parts(none, "nothing of what was learnt arrives", "the norm 0", "norm 3", "--lr");
  EXPECT_EQ(none.find("rounding"), std::string::npos) << none;
  EXPECT_EQ(none.find("--output-dtype"), std::string::npos) << none;

  const Addition rounded{
      .norm_squared = 1, .lost_squared = 3e7, .arrived_squared = 3e7, .base_squared = 9};
  require_learnt(rounded, at::kBFloat16);
  const auto lost = tests::error_of([&] { require_stored(rounded, at::kBFloat16); });
  tests::expect_parts(lost, "rounding to bfloat16 takes all of its square", "--output-dtype");
  EXPECT_EQ(lost.find('%'), std::string::npos) << lost;
  tests::expect_parts(
      tests::error_of([&] { require_arrival(rounded, 1, at::kHalf); }), "the update arrives",
      "rounding to float16 takes all of its square", "--alpha", "a wider --output-dtype");
  const auto widest = tests::error_of([&] { require_arrival(rounded, 1, at::kFloat); });
  EXPECT_EQ(widest.find("--output-dtype"), std::string::npos) << widest;
}

}  // namespace
}  // namespace theseus::output
