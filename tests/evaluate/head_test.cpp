// A head carried through maps that are known to be right gives the source's own answers.

#include "theseus/evaluate/head.h"

#include <cmath>
#include <filesystem>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/evaluate/features.h"
#include "theseus/output/feature_space.h"
#include "theseus/output/job.h"
#include "theseus/output/sentence_head.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::evaluate {
namespace {

using tests::Planting;

struct Pair {
  tests::Planted planted;
  transport::Alignment alignment;
  model::Model tuned;   // the tuned source
  model::Model target;  // the same function
};

Pair aligned(const std::string& name, Planting planting, const tests::ScratchDir& scratch) {
  auto planted = tests::plant(name, planting, scratch.path());
  auto job = tests::planted_job(planted, scratch.path());
  job.tuned.clear();
  job.write.clear();
  output::align_job(job, [](double, double, const std::string&) {});
  return {
      planted, transport::Alignment::open(job.out), model::Model::open(planted.tuned),
      model::Model::open(planted.expected)};
}

Head moved(const Head& head, const Pair& pair) {
  return carried(head, pair.tuned.architecture(), pair.target.architecture(), pair.alignment);
}

TEST(Head, GivesTheSourcesAnswers) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"vit", "bert"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    auto pair = aligned(name, Planting::kPermuted, scratch);
    const auto& inputs = pair.planted.inputs;
    const auto own = find_head(pair.tuned);
    ASSERT_TRUE(own.weight.defined());
    const auto source = pair.tuned.forward(inputs);
    EXPECT_LT(tests::frobenius_error(own.logits(source, inputs), source.at("logits")), 1e-6);
    const auto head = moved(own, pair);
    EXPECT_EQ(head.about.at("through"), head.space);
    EXPECT_TRUE(at::equal(head.bias, own.bias));
    EXPECT_LT(
        tests::frobenius_error(
            head.logits(pair.target.forward(inputs), inputs), source.at("logits")),
        1e-4);
  }
}

TEST(Head, OfAnAdapterIsTheAdaptersOwn) {
  const c10::NoGradGuard no_gradients;
  for (const std::string name : {"adapted_vit", "adapted_bert"}) {
    SCOPED_TRACE(name);
    auto model = tests::open_case(name);
    const auto before = find_head(model).weight;
    model.attach(update::read_adapter(tests::case_path(name + "_adapter")));
    const auto inputs = tests::case_inputs(name + "_adapter");
    const auto outputs = model.forward(inputs);
    const auto head = find_head(model);
    EXPECT_FALSE(at::equal(head.weight, before));  // low-rank in the one, replaced in the other
    EXPECT_LT(tests::frobenius_error(head.logits(outputs, inputs), outputs.at("logits")), 1e-6);
  }
}

// An isometry keeps lengths, and a target that repeats every feature has vectors sqrt(2) times as long.
TEST(Head, HasTheLengthsOfTheTarget) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto pair = aligned("vit", Planting::kWidened, scratch);
  const auto& inputs = pair.planted.inputs;
  const auto head = moved(find_head(pair.tuned), pair);
  EXPECT_EQ(head.weight.size(1), 2 * find_head(pair.tuned).weight.size(1));
  const auto found = head.logits(pair.target.forward(inputs), inputs) - head.bias;
  const auto expected = pair.tuned.forward(inputs).at("logits") - head.bias;
  EXPECT_LT(tests::frobenius_error(found, expected * std::sqrt(2.0)), 1e-4);
}

// Encoders without a head: what a pooler writes has no map of its own, and the units of its dense layer.
TEST(Head, GoesThroughTheSameUnitsBeforeTheActivation) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto pair = aligned("bert_bare", Planting::kPermuted, scratch);
  EXPECT_FALSE(find_head(pair.tuned).weight.defined());
  const auto& inputs = pair.planted.inputs;
  const Head own{
      .weight = at::randn({3, 24}),
      .bias = at::randn({3}),
      .space = "encoder.pooled",
      .output = "pooler_output"};
  const auto head = moved(own, pair);
  EXPECT_EQ(head.about.at("through"), "encoder.pooled_up");
  EXPECT_EQ(notes_on_head(head).size(), 1U);
  EXPECT_LT(
      tests::frobenius_error(
          head.logits(pair.target.forward(inputs), inputs),
          own.logits(pair.tuned.forward(inputs), inputs)),
      1e-3);
}

// Features of every family without a head live in a space that an alignment has.
TEST(Head, FeaturesHaveAMap) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"timm_vit", "bert_bare", "vit_bare", "t5", "clip", "openclip"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    auto pair = aligned(name, Planting::kPermuted, scratch);
    const auto space = output::feature_space(pair.target.architecture());
    const auto map = pair.alignment.find_map(space);
    ASSERT_TRUE(map.defined()) << space;
    auto inputs = pair.planted.inputs;
    const auto source = features_of(pair.tuned.forward(inputs), inputs);
    const auto target = features_of(pair.target.forward(inputs), inputs);
    EXPECT_LT(tests::frobenius_error(source.matmul(map), target), 1e-3);
  }
}

TEST(Head, SaysWhatIsMissing) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto pair = aligned("vit", Planting::kPermuted, scratch);
  auto head = find_head(pair.tuned);
  head.space = "visual.nowhere";
  tests::expect_parts(
      tests::error_of([&] { moved(head, pair); }), "no map of visual.nowhere", "theseus align");
  head = find_head(pair.tuned);
  head.weight = head.weight.slice(1, 0, 20);
  tests::expect_parts(
      tests::error_of([&] { moved(head, pair); }), "reads 20 features", "another source");
  head.output = "pooler_output";
  const auto& inputs = pair.planted.inputs;
  tests::expect_parts(
      tests::error_of([&] { head.logits(pair.target.forward(inputs), inputs); }), "no pooler");
}

// A head beside an encoder without pooler reads the features that a probe reads.
TEST(Head, BesideABareEncoder) {
  const tests::ScratchDir dir;
  const auto base = checkpoint::Checkpoint::open(tests::case_path("bert_bare"));
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& info : base.tensors()) {
    if (info.name.find("pooler") == std::string::npos) {
      tensors.emplace_back(info.name, base.tensor(info.name));
    }
  }
  checkpoint::write_safetensors(dir / "model.safetensors", tensors);
  std::filesystem::copy_file(tests::case_path("bert_bare") / "config.json", dir / "config.json");
  auto model = model::Model::open(dir.path());
  const auto width = model.architecture().head_width;
  EXPECT_FALSE(find_head(model).weight.defined());
  at::manual_seed(2);
  output::write_sentence_head(
      {.weight = at::randn({3, width}), .bias = at::randn({3})}, dir.path());
  const auto head = find_head(model);
  ASSERT_EQ(head.weight.size(0), 3);
  EXPECT_EQ(head.space, output::feature_space(model.architecture()));
  EXPECT_EQ(head.output, "");
  const auto inputs = tests::case_inputs("bert_bare");
  const auto outputs = model.forward(inputs);
  EXPECT_TRUE(at::allclose(head.logits(outputs, inputs), outputs.at("logits"), 1e-5, 1e-6));
  model.detach();
  EXPECT_FALSE(model.forward(inputs).contains("logits"));
}

}  // namespace
}  // namespace theseus::evaluate
