// Moments of paired gradients: what the public reference collects from the same two models
// (tools/goldens/gradfix.py), and what follows where the two models are one.

#include "theseus/stats/gradient_moments.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/stats/supervision.h"

#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/scratch_dir.h"

namespace theseus::stats {
namespace {

const std::string kFixture = THESEUS_SOURCE_DIR "/tests/fixtures/gradient";

Route block_by_block(int64_t blocks) {
  Route route;
  for (int64_t i = 0; i < blocks; ++i) {
    route.source.push_back({.run_as = i, .parts = {{i, 1.0}}});
    route.pairs.push_back({i, i, 1});
  }
  return route;
}

class PairedGradients : public testing::Test {
 protected:
  Calibration calibration(const model::Model& source, const model::Model& target) {
    model::Batch inputs;
    for (const auto& [name, tensor] : tests::read_tensors(kFixture + "/golden.safetensors")) {
      if (name == "labels" || name.starts_with("source/") || name.starts_with("target/")) {
        inputs[name] = tensor;
      }
    }
    tests::write_inputs(scratch_ / "inputs.safetensors", inputs);
    return Calibration::open(
        scratch_ / "inputs.safetensors", source.architecture(), target.architecture(),
        {.batch_size = 4});
  }

  // Of everything that a linear layer of the target writes.
  std::map<int64_t, Moments> moments(
      model::Model& source, model::Model& target, const Calibration& inputs) {
    Collect collect{.matchers = {{"visual", &find_plugin(all_matchers(), "matcher", "grid")}}};
    for (const auto& layer : target.architecture().linears) {
      collect.observed.insert(layer.out.begin(), layer.out.end());
    }
    // The text tower has a block, too, and no image reaches it.
    GradientMoments found(source, target, block_by_block(target.architecture().blocks()), collect);
    for (int64_t batch = 0; batch < inputs.batches(); ++batch) {
      found.add(inputs, batch);
    }
    return found.result();
  }

  tests::ScratchDir scratch_;
};

TEST_F(PairedGradients, AreTheReferences) {
  auto source = model::Model::open(kFixture + "/source");
  auto target = model::Model::open(kFixture + "/target");
  const auto found = moments(source, target, calibration(source, target));
  const auto golden = tests::read_tensors(kFixture + "/golden.safetensors");
  const std::map<std::string, std::string> modules = {
      {"q", "attn.q_proj"},          {"k", "attn.k_proj"},   {"v", "attn.v_proj"},
      {"attn_out", "attn.out_proj"}, {"mlp_up", "mlp.c_fc"}, {"mlp_out", "mlp.c_proj"}};
  for (int64_t block = 0; block < 2; ++block) {
    for (const auto& [space, module] : modules) {
      const auto name = c10::str("visual.", block, ".", space);
      SCOPED_TRACE(name);
      ASSERT_TRUE(found.at(block + 1).contains(name));
      const auto& ours = found.at(block + 1).at(name);
      const auto path = c10::str("transformer.resblocks.", block, ".", module);
      // Rows of gradients are float32, of either program.
      EXPECT_LT(tests::frobenius_error(ours.cross, golden.at("cross/" + path)), 1e-5);
      EXPECT_EQ(ours.rows, golden.at("rows/" + path).item<int64_t>());
    }
  }
  const auto stages = static_cast<int64_t>(source.architecture().blocks()) + 2;
  ASSERT_EQ(
      found.at(stages - 1).size(), 1);  // what the projection writes; the text's is not reached
  const auto& features = found.at(stages - 1).begin()->second;
  EXPECT_LT(tests::frobenius_error(features.cross, golden.at("cross/visual")), 1e-5);
}

TEST_F(PairedGradients, CountRowsThatAreThere) {
  auto source = model::Model::open(kFixture + "/source");
  auto target = model::Model::open(kFixture + "/target");
  const auto found = moments(source, target, calibration(source, target));
  // Behind the last attention only the first token goes on: 12 images, one row each.
  EXPECT_EQ(found.at(2).at("visual.1.mlp_up").distinct, 12);
  EXPECT_EQ(found.at(2).at("visual.1.mlp_up").rows, 12 * 5);
  EXPECT_EQ(found.at(2).at("visual.1.q").distinct, 12);
  EXPECT_EQ(found.at(2).at("visual.1.v").distinct, 12 * 5);
  EXPECT_EQ(found.at(1).at("visual.0.mlp_up").distinct, 12 * 5);
}

TEST_F(PairedGradients, OfOneModelAreSymmetric) {
  auto left = model::Model::open(kFixture + "/target");
  auto right = model::Model::open(kFixture + "/target");
  auto inputs = tests::read_tensors(kFixture + "/golden.safetensors");
  tests::write_inputs(
      scratch_ / "one.safetensors", {{"pixel_values", inputs.at("target/pixel_values")},
                                     {"labels", inputs.at("labels")},
                                     {"classes", inputs.at("target/classes")}});
  const auto calibration = Calibration::open(
      scratch_ / "one.safetensors", left.architecture(), right.architecture(), {.batch_size = 4});
  for (const auto& [stage, spaces] : moments(left, right, calibration)) {
    for (const auto& [space, found] : spaces) {
      EXPECT_TRUE(at::equal(found.cross, found.cross.t())) << space;
      const auto values = at::linalg_eigvalsh(found.cross);  // ascending
      EXPECT_GE(values[0].item<double>(), -1e-12 * values[-1].item<double>()) << space;
    }
  }
}

TEST_F(PairedGradients, LabelsAreChecked) {
  auto model = model::Model::open(kFixture + "/target");
  const auto inputs = tests::read_tensors(kFixture + "/golden.safetensors");
  const auto error = [&](const model::Batch& more) {
    auto batch = more;
    batch["pixel_values"] = inputs.at("target/pixel_values");
    tests::write_inputs(scratch_ / "bad.safetensors", batch);
    const auto calibration = Calibration::open(
        scratch_ / "bad.safetensors", model.architecture(), model.architecture(), {});
    return tests::error_of([&] { loss_of(model, calibration, Side::kTarget); });
  };
  const auto& labels = inputs.at("labels");
  const auto& classes = inputs.at("target/classes");
  tests::expect_parts(error({}), "no labels", "labels [n]");
  tests::expect_parts(error({{"labels", labels}}), "classes by their names", "classes [c, d]");
  tests::expect_parts(
      error({{"labels", labels.narrow(0, 0, 3)}, {"classes", classes}}), "labels", "[3]",
      "expected int64 [n]");
  tests::expect_parts(
      error({{"labels", labels.to(at::kFloat)}, {"classes", classes}}), "Float", "expected int64");
  tests::expect_parts(
      error({{"labels", labels + 5}, {"classes", classes}}), "is none of 5 classes");
  tests::expect_parts(
      error({{"labels", labels}, {"classes", classes / 0}}), "finite row of features");
}

}  // namespace
}  // namespace theseus::stats
