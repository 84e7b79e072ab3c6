#include "theseus/model/layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

namespace theseus::model {
namespace {

at::Tensor leaf(at::IntArrayRef shape) {
  return at::randn(shape, at::kDouble).set_requires_grad(true);
}

// Two sequences of three tokens; the second begins with two that are padding, whose queries see no key.
at::Tensor left_padded() {
  const auto real = at::tensor({1, 1, 1, 0, 0, 1}).view({2, 3});
  return both(causal_mask(3, 3, at::kCPU), key_mask(real));
}

class Attend : public testing::TestWithParam<bool> {};

TEST_P(Attend, GradientsAreFiniteWhereAQuerySeesNoKey) {
  at::manual_seed(1);
  auto q = leaf({2, 4, 3, 5}), k = leaf({2, 2, 3, 5}), v = leaf({2, 2, 3, 5});
  auto bias = GetParam() ? leaf({1, 4, 3, 3}) : at::Tensor();
  const Attention how{.scale = 0.4, .allowed = left_padded(), .bias = bias};
  const auto out = attend(q, k, v, how);
  EXPECT_TRUE(at::equal(out[1].narrow(1, 0, 2), at::zeros({4, 2, 5}, at::kDouble)));
  // The last token of the second sequence sees itself alone.
  EXPECT_TRUE(at::allclose(out[1].select(1, 2), v[1].select(1, 2).repeat_interleave(2, 0)));
  // Whatever comes back from the rows that see nothing must not get through.
  auto back = at::randn_like(out);
  back[1].narrow(1, 0, 2).fill_(1e6);
  out.backward(back);
  for (const auto& one : {q, k, v}) {
    EXPECT_TRUE(all_finite(one.grad()));
  }
  const auto zero = at::zeros({2, 2, 5}, at::kDouble);
  EXPECT_TRUE(at::equal(q.grad()[1].narrow(1, 0, 2), at::zeros({4, 2, 5}, at::kDouble)));
  EXPECT_TRUE(at::equal(k.grad()[1].narrow(1, 0, 2), zero));
  EXPECT_TRUE(at::equal(v.grad()[1].narrow(1, 0, 2), zero));
  if (GetParam()) {
    EXPECT_TRUE(all_finite(bias.grad()));
  }
  // The first sequence, alone and without padding, gives the same.
  auto q0 = q.detach()[0].unsqueeze(0).clone().set_requires_grad(true);
  const auto alone = attend(
      q0, k.detach()[0].unsqueeze(0), v.detach()[0].unsqueeze(0),
      {.scale = 0.4, .allowed = causal_mask(3, 3, at::kCPU), .bias = how.bias});
  EXPECT_TRUE(at::allclose(alone[0], out[0]));
  alone.backward(back[0].unsqueeze(0));
  EXPECT_TRUE(at::allclose(q0.grad()[0], q.grad()[0]));
}

INSTANTIATE_TEST_SUITE_P(Bias, Attend, testing::Bool());

TEST(MeanOfTokens, LeavesOutPadding) {
  const auto rows = at::arange(12, at::kFloat).view({2, 3, 2});
  EXPECT_TRUE(at::equal(
      mean_of_tokens(rows, at::tensor({1, 1, 0, 0, 0, 1}).view({2, 3})),
      at::tensor({1.0F, 2.0F, 10.0F, 11.0F}).view({2, 2})));
  EXPECT_TRUE(
      at::equal(mean_of_tokens(rows, {}), at::tensor({2.0F, 3.0F, 8.0F, 9.0F}).view({2, 2})));
  EXPECT_EQ(mean_of_tokens(rows.to(at::kBFloat16), {}).scalar_type(), at::kBFloat16);
}

}  // namespace
}  // namespace theseus::model
