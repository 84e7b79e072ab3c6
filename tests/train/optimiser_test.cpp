#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/train/adamw.h"
#include "theseus/train/filter.h"
#include "theseus/train/random_values.h"
#include "theseus/train/schedule.h"

#include "tests/support/expect_error.h"

namespace theseus::train {
namespace {

at::Tensor leaf(const std::vector<float>& values) {
  return at::tensor(values).set_requires_grad(true);
}

void set_gradients(const Tensors& leaves, int64_t step) {
  const double sign = step % 2 == 0 ? 1 : -1;
  leaves.at("w").mutable_grad() =
      at::tensor(std::vector<float>{0.1F, -0.5F, 1e-3F, 3.0F}) * (sign * (step + 1.0));
  leaves.at("b").mutable_grad() = at::tensor(std::vector<float>{1, 2});
}

// Recorded from torch.optim.AdamW of PyTorch 1.13: rate 0.002, 0.004, ... 0.01, weight_decay 0.1.
TEST(AdamW, IsThatOfPyTorch) {
  const Tensors leaves = {{"w", leaf({0.5F, -1.25F, 2, 0})}, {"b", leaf({0.1F, -0.2F})}};
  AdamW optimiser({.decay = 0.1});
  for (int64_t step = 0; step < 5; ++step) {
    set_gradients(leaves, step);
    optimiser.step(leaves, 0.01 * (static_cast<double>(step) + 1) / 5);
  }
  const auto w =
      at::tensor(std::vector<float>{0.495542645F, -1.24329519F, 1.99104786F, -0.00295907515F});
  EXPECT_LT((leaves.at("w").detach() - w).abs().max().item<double>(), 3e-7);
  const auto b = at::tensor(std::vector<float>{0.0697343349F, -0.229366705F});
  EXPECT_LT((leaves.at("b").detach() - b).abs().max().item<double>(), 3e-8);
}

TEST(AdamW, GoesOnFromItsMoments) {
  const Tensors leaves = {{"w", leaf({0.5F, -1.25F, 2, 0})}, {"b", leaf({0.1F, -0.2F})}};
  AdamW whole({});
  Tensors copies;
  AdamW rest({});
  for (int64_t step = 0; step < 6; ++step) {
    if (step == 3) {
      Tensors moments;
      for (const auto& [name, tensor] : whole.moments()) {
        moments[name] = tensor.clone();
      }
      rest.restore(whole.steps(), moments);
      for (const auto& [name, tensor] : leaves) {
        copies[name] = tensor.detach().clone().set_requires_grad(true);
      }
    }
    set_gradients(leaves, step);
    whole.step(leaves, 0.01);
    if (step >= 3) {
      set_gradients(copies, step);
      rest.step(copies, 0.01);
    }
  }
  EXPECT_EQ(rest.steps(), 6);
  for (const auto& [name, tensor] : leaves) {
    EXPECT_TRUE(at::equal(tensor, copies.at(name))) << name;
  }
}

TEST(AdamW, LeavesAloneWhatHasNoGradient) {
  const Tensors leaves = {{"w", leaf({1, 2})}, {"still", leaf({3})}};
  leaves.at("w").mutable_grad() = at::ones({2});
  AdamW optimiser({.decay = 0.5});
  optimiser.step(leaves, 0.1);
  EXPECT_EQ(leaves.at("still").item<float>(), 3);
  EXPECT_LT(leaves.at("w")[0].item<float>(), 1);
  EXPECT_EQ(optimiser.moments().size(), 2);
}

TEST(ClipGradients, ByTheNormOfAll) {
  const Tensors leaves = {{"a", leaf({0})}, {"b", leaf({0, 0})}, {"none", leaf({0})}};
  leaves.at("a").mutable_grad() = at::full({1}, 3.0);
  leaves.at("b").mutable_grad() = at::tensor(std::vector<float>{0, 4});
  EXPECT_NEAR(clip_gradients(leaves, 0), 5, 1e-6);
  EXPECT_EQ(leaves.at("a").grad().item<float>(), 3);
  EXPECT_NEAR(clip_gradients(leaves, 10), 5, 1e-6);
  EXPECT_EQ(leaves.at("a").grad().item<float>(), 3);
  EXPECT_NEAR(clip_gradients(leaves, 1), 5, 1e-6);
  EXPECT_NEAR(leaves.at("a").grad().item<float>(), 0.6, 1e-6);
  EXPECT_NEAR(clip_gradients(leaves, 1), 1, 1e-6);
  leaves.at("a").mutable_grad() = at::full({1}, INFINITY);
  tests::expect_parts(
      tests::error_of<NumericError>([&] { clip_gradients(leaves, 1); }), "not finite");
}

TEST(Schedule, RisesThenFalls) {
  const Schedule schedule{.peak = 2, .steps = 100, .warmup = 10};
  EXPECT_NEAR(schedule.rate(0), 0.2, 1e-12);
  EXPECT_NEAR(schedule.rate(9), 2, 1e-12);
  EXPECT_NEAR(schedule.rate(10), 2, 1e-12);
  EXPECT_NEAR(schedule.rate(55), 1, 1e-12);
  for (int64_t step = 11; step < 100; ++step) {
    EXPECT_LT(schedule.rate(step), schedule.rate(step - 1));
  }
  EXPECT_GT(schedule.rate(99), 0);
  EXPECT_LT(schedule.rate(99), 0.001);
  const Schedule warm{.peak = 1, .steps = 4, .warmup = 4};
  EXPECT_EQ(warm.rate(3), 1);
}

TEST(Filter, PartsAndWholes) {
  EXPECT_TRUE(matches("blocks.0.mlp.fc1.weight", "mlp"));
  EXPECT_FALSE(matches("blocks.0.attn.qkv.weight", "mlp"));
  EXPECT_TRUE(matches("blocks.0.mlp.fc1.weight", "blocks.0.*"));
  EXPECT_FALSE(matches("xblocks.0.mlp", "blocks.0.*"));
  EXPECT_TRUE(matches("blocks.0.mlp.fc1.bias", "*.bias"));
  EXPECT_FALSE(matches("blocks.0.bias.x", "*.bias"));
  EXPECT_TRUE(matches("blocks.12.mlp.fc1.weight", "blocks.*.fc1*"));
  EXPECT_TRUE(matches("anything", "*"));
  EXPECT_TRUE(matches("aXbXc", "a*b*c"));
  EXPECT_FALSE(matches("aXbX", "a*b*c"));
  EXPECT_TRUE(matches("mlp.fc1", std::vector<std::string>{"attn", "fc1"}));
  EXPECT_FALSE(matches("mlp.fc1", std::vector<std::string>{}));
  tests::expect_parts(
      tests::error_of([] {
        require_all_match("--freeze", {"head", "tail"}, {"head.weight"});
      }),
      "--freeze", "'tail'", "head.weight");
}

TEST(RandomValues, AreOfTheirKindAndSeed) {
  const auto normal = random_normal({200, 100}, 0.02, 7, 1);
  EXPECT_NEAR(normal.mean().item<double>(), 0, 0.02 / 141 * 4);
  EXPECT_NEAR(normal.std().item<double>(), 0.02, 0.0005);
  const auto uniform = random_uniform({200, 100}, 0.5, 7, 1);
  EXPECT_LE(uniform.abs().max().item<double>(), 0.5);
  EXPECT_NEAR(uniform.std().item<double>(), 1 / std::sqrt(12.0), 0.005);
  EXPECT_TRUE(at::equal(normal, random_normal({200, 100}, 0.02, 7, 1)));
  EXPECT_FALSE(at::equal(normal, random_normal({200, 100}, 0.02, 8, 1)));
  EXPECT_FALSE(at::equal(normal, random_normal({200, 100}, 0.02, 7, 2)));
}

// In passes forward: a step takes three for each of its examples.
TEST(Measuring, CostsAFractionOfLearning) {
  for (const int64_t steps : {10, 50, 2000}) {
    for (const int64_t batch : {32, 128, 512}) {
      const auto count = std::min<int64_t>(2000, most_held_out(steps, batch));
      const auto every = validate_every(steps, batch, count);
      const auto times = 1 + steps / every + (steps % every == 0 ? 0 : 1);
      const auto learning = 3.0 * static_cast<double>(steps * batch);
      EXPECT_LT(static_cast<double>(times * count), 0.4 * learning) << steps << " " << batch;
    }
  }
  EXPECT_EQ(most_held_out(10, 1), 100);  // fewer tell nothing
  EXPECT_EQ(validate_every(2000, 128, 2000), 100);
  EXPECT_EQ(validate_every(1, 1, 0), 1);
}

}  // namespace
}  // namespace theseus::train
