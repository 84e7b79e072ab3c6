// Signs and masks: properties, and what the public reference made of the same model and images
// (tools/goldens/gradfix.py).

#include "theseus/gradient/signs.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/checkpoint.h"

#include "tests/gradient/weight_gradients.h"
#include "tests/support/expect_error.h"

namespace theseus::gradient {
namespace {

const std::string kFixture = THESEUS_SOURCE_DIR "/tests/fixtures/gradient";
constexpr int64_t kBatch = 4;  // as in gradfix.py

class GoldenSigns : public testing::Test {
 protected:
  at::Tensor golden(const std::string& name) const { return golden_.tensor(name); }

  Labelled batch(int64_t first, int64_t count) const {
    return {
        .batch = {{"pixel_values", golden("target/pixel_values").narrow(0, first, count)}},
        .labels = golden("labels").narrow(0, first, count)};
  }

  std::vector<std::string> tensors() const {
    std::vector<std::string> names;
    for (const auto& info : golden_.tensors()) {
      if (info.name.starts_with("delta/")) {
        names.push_back(info.name.substr(6));
      }
    }
    return names;
  }

  Loss loss() { return prompt_loss(golden("target/classes"), prompt_scale(model_)); }

  std::map<std::string, at::Tensor> signs(Vote vote, int64_t batch_size = kBatch) {
    Signs found(model_, loss(), tensors(), vote);
    const auto all = golden("labels").size(0);
    for (int64_t first = 0; first < all; first += batch_size) {
      found.add(batch(first, batch_size));
    }
    EXPECT_EQ(found.measured().count, all);
    EXPECT_GT(found.measured().loss, 0);
    return found.result();
  }

  // The mean gradient, by tensor.
  std::map<std::string, at::Tensor> gradients() {
    return weight_gradients(model_, loss(), batch(0, golden("labels").size(0)), tensors());
  }

  checkpoint::Checkpoint golden_ = checkpoint::Checkpoint::open(kFixture + "/golden.safetensors");
  model::Model model_ = model::Model::open(kFixture + "/target");
};

// An entry whose gradient is rounding has no sign of its own: keys' biases have a gradient of zero.
TEST_F(GoldenSigns, MeanIsTheReferences) {
  const auto found = signs(Vote::kMean);
  const auto slopes = gradients();
  int64_t compared = 0;
  ASSERT_EQ(found.size(), tensors().size());
  for (const auto& [name, sign] : found) {
    const auto expected = golden("signs/mean/" + name);
    ASSERT_EQ(sign.scalar_type(), at::kChar);
    ASSERT_EQ(sign.sizes(), expected.sizes()) << name;
    const auto& slope = slopes.at(name);
    const auto clear = slope.abs() > 1e-5 * slope.abs().max();
    EXPECT_EQ((sign != expected).logical_and(clear).sum().item<int64_t>(), 0) << name;
    compared += clear.sum().item<int64_t>();
  }
  EXPECT_GT(compared, 3000);
}

TEST_F(GoldenSigns, MajorityIsTheReferences) {
  int64_t other = 0, all = 0;
  for (const auto& [name, sign] : signs(Vote::kMajority)) {
    if (name.ends_with("in_proj_bias")) {
      continue;  // votes of rounding
    }
    other += (sign != golden("signs/majority/" + name)).sum().item<int64_t>();
    all += sign.numel();
  }
  EXPECT_GT(all, 3000);
  EXPECT_LE(other, all / 1000) << "of " << all;
}

TEST_F(GoldenSigns, MasksAreTheReferences) {
  for (const auto& [vote, word, mask] :
       {std::tuple("mean", "normal", Mask::kNormal),
        std::tuple("majority", "force", Mask::kForce)}) {
    for (const auto& name : tensors()) {
      const auto found = masked(
          golden("delta/" + name), golden(c10::str("signs/", vote, "/", name)), mask_of(word));
      EXPECT_EQ(mask_of(word), mask);
      EXPECT_TRUE(at::equal(found, golden(c10::str("masked/", vote, "/", word, "/", name))))
          << word << " " << name;
    }
  }
}

TEST_F(GoldenSigns, OneExampleVotesAsItsMean) {
  const auto vote = [&](Vote how) {
    Signs found(model_, loss(), tensors(), how);
    found.add(batch(3, 1));
    return found.result();
  };
  const auto mean = vote(Vote::kMean), majority = vote(Vote::kMajority);
  ASSERT_EQ(mean.size(), majority.size());
  for (const auto& [name, sign] : mean) {
    EXPECT_TRUE(at::equal(sign, majority.at(name))) << name;
  }
}

TEST_F(GoldenSigns, MajorityDoesNotDependOnBatches) {
  const auto some = signs(Vote::kMajority, 4), all = signs(Vote::kMajority, 12);
  for (const auto& [name, sign] : some) {
    EXPECT_TRUE(at::equal(sign, all.at(name))) << name;
  }
}

TEST_F(GoldenSigns, AStepAlongTheSignsGoesDown) {
  const auto down = signs(Vote::kMean);
  const auto all = batch(0, golden("labels").size(0));
  const auto before = measure(model_, loss(), all).loss;
  for (const auto& [name, sign] : down) {
    model_.weights().replace(name, model_.weights()[name] + 1e-4 * sign.to(at::kFloat));
  }
  EXPECT_LT(measure(model_, loss(), all).loss, before - 1e-3);
}

TEST(Masked, KeepsWhatAgreesOrForcesIt) {
  const auto delta = at::tensor({1.0F, -2.0F, 3.0F, -4.0F, 0.0F, 5.0F});
  const auto signs = at::tensor({1, 1, -1, -1, 1, 0}).to(at::kChar);
  EXPECT_TRUE(at::equal(
      masked(delta, signs, Mask::kNormal), at::tensor({1.0F, 0.0F, 0.0F, -4.0F, 0.0F, 0.0F})));
  EXPECT_TRUE(at::equal(
      masked(delta, signs, Mask::kForce), at::tensor({1.0F, 2.0F, -3.0F, -4.0F, 0.0F, 0.0F})));
  EXPECT_TRUE(at::equal(masked(delta, signs, Mask::kNone), delta));
  EXPECT_DOUBLE_EQ(agreement(delta, signs), 2.0 / 5.0);
  EXPECT_DOUBLE_EQ(agreement(at::zeros({6}), signs), 1);
}

TEST(Masked, WordsAreChecked) {
  tests::expect_parts(tests::error_of([] { mask_of("soft"); }), "soft", "normal force");
  tests::expect_parts(tests::error_of([] { vote_of("max"); }), "max", "mean majority");
}

}  // namespace
}  // namespace theseus::gradient
