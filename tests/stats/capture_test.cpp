#include "theseus/stats/capture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace theseus::stats {
namespace {

// norm(stream) -> in -> q and k -> mix -> out
model::Architecture small() {
  model::Architecture architecture;
  architecture.norms = {{.module = "ln", .in = "t.0.stream", .out = "t.0.in", .block = 0}};
  architecture.linears = {
      {.module = "q", .in = "t.0.in", .out = {"t.0.q"}, .block = 0},
      {.module = "k", .in = "t.0.in", .out = {"t.0.k"}, .block = 0},
      {.module = "out", .in = "t.0.mix", .out = {"t.0.out"}, .block = 0},
      {.module = "again", .in = "t.0.mix", .out = {"t.0.other"}, .block = 0}};
  return architecture;
}

void pass(Capture& capture, double value) {
  const auto x = at::full({1, 2, 3}, value);
  capture.norm("ln", x, x + 1);
  capture.linear("q", x + 1, x);
  capture.linear("k", x + 1, x);
  capture.linear("out", x + 2, x);
  capture.linear("again", x + 2, x);
  capture.linear("unknown", x, x);
}

TEST(Capture, SeesEverySpaceOnce) {
  Capture capture(small(), {"t.*.in", "t.*.mix", "t.*.stream"});
  pass(capture, 1);
  const auto rows = capture.take();
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(at::equal(rows.at("t.0.stream"), at::full({1, 2, 3}, 1.0)));
  EXPECT_TRUE(at::equal(rows.at("t.0.in"), at::full({1, 2, 3}, 2.0)));
  EXPECT_TRUE(at::equal(rows.at("t.0.mix"), at::full({1, 2, 3}, 3.0)));
  EXPECT_TRUE(capture.take().empty());
}

TEST(Capture, PutsThePiecesOfAPassTogetherInOrder) {
  Capture capture(small(), {"t.*.mix"});
  pass(capture, 1);
  pass(capture, 5);
  const auto rows = capture.take();
  ASSERT_EQ(rows.size(), 1U);  // no other role was asked for
  ASSERT_EQ(rows.at("t.0.mix").size(0), 2);
  EXPECT_EQ(rows.at("t.0.mix")[1][0][0].item<double>(), 7);
}

}  // namespace
}  // namespace theseus::stats
