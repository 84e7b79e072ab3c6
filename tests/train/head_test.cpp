// New heads on encoders: trained as leaves, written as their library names them, opened again.

#include "theseus/train/head.h"

#include <filesystem>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/gradient/loss.h"
#include "theseus/train/choose.h"
#include "theseus/train/memory.h"
#include "theseus/train/write_tuned.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::train {
namespace {

data::Examples labelled(bool images) {
  data::Examples examples;
  examples.names = {"0", "1", "2"};
  examples.labels = {0, 2, 1};
  examples.classes = {"cat", "dog", "cow"};
  if (images) {
    examples.image = [](int64_t) -> data::Image { throw InputError("not read"); };
  } else {
    examples.text = [](int64_t) { return data::Fields(); };
  }
  return examples;
}

class NewHead : public testing::TestWithParam<const char*> {};

TEST_P(NewHead, IsWrittenAndOpenedAgain) {
  auto model = tests::open_case(GetParam());
  const auto inputs = tests::case_inputs(GetParam());
  const bool images = inputs.contains("pixel_values");
  const auto head = choose_head("", model, labelled(images));
  ASSERT_EQ(head.kind, Head::Kind::kNew);
  const tests::ScratchDir scratch;
  at::Tensor expected;
  {
    gradient::Trainable trainable(model);
    begin_head(head, 4, trainable);
    EXPECT_EQ(gradient::head_classes(model), 3);
    trainable.leaves().at(head.module + ".bias").detach().copy_(at::arange(3));
    expected = model.forward(inputs).at("logits").detach();
    EXPECT_EQ(expected.size(1), 3);
    const auto written =
        write_tuned(model, trainable.leaves(), head, output::OutputDtype::kAuto, scratch.path());
    EXPECT_EQ(written.learnt.norm_squared, 0);  // the encoder is as it was
  }
  EXPECT_EQ(gradient::head_classes(model), 0);
  EXPECT_FALSE(model.forward(inputs).contains("logits"));
  auto again = model::Model::open(scratch.path());
  EXPECT_TRUE(at::allclose(again.forward(inputs).at("logits"), expected, 1e-6, 1e-6));
  EXPECT_EQ(gradient::head_classes(again), 3);
  EXPECT_EQ(choose_head("", again, labelled(images)).kind, Head::Kind::kKeep);
  EXPECT_EQ(choose_head("new", again, labelled(images)).replaced, 3);
  auto more = labelled(images);
  more.classes = {"cat", "dog"};
  tests::expect_parts(
      tests::error_of([&] { choose_head("keep", again, more); }), "has 3 classes", "the data 2");
}

INSTANTIATE_TEST_SUITE_P(
    Encoders,
    NewHead,
    testing::Values("bert_bare", "vit_bare", "timm_headless"),
    [](const auto& info) { return std::string(info.param); });

TEST(ChooseHead, WhatModelAndDataAreMadeFor) {
  const auto clip = tests::open_case("clip_legacy_end");
  EXPECT_EQ(choose_head("", clip, labelled(true)).kind, Head::Kind::kZeroShot);
  const auto causal = tests::open_case("mistral");
  EXPECT_EQ(choose_head("", causal, labelled(false)).kind, Head::Kind::kKeep);
  tests::expect_parts(
      tests::error_of([&] { choose_head("new", causal, labelled(false)); }), "holds no",
      "--answer");
  tests::expect_parts(
      tests::error_of([&] { choose_head("zero-shot", causal, labelled(false)); }), "such as CLIP");
  const auto encoder = tests::open_case("bert_bare");
  auto bare = labelled(false);
  bare.labels.clear();
  tests::expect_parts(tests::error_of([&] { choose_head("", encoder, bare); }), "no labels");
}

TEST(ChooseTrained, LoraOnWhatPeftCanAdapt) {
  const auto clip = tests::open_case("clip_legacy_end");
  const auto choice = choose_trained(
      clip.architecture(), true, {.kind = Head::Kind::kZeroShot}, {.low_rank = true});
  EXPECT_TRUE(choice.tensors.empty());
  EXPECT_EQ(
      choice.modules.size(), 6 * static_cast<size_t>(clip.architecture().towers.front().blocks));
  for (const auto& module : choice.modules) {
    EXPECT_TRUE(module.starts_with("vision_model.encoder.layers.")) << module;
  }
  const auto open_clip =
      model::Model::open(std::string(THESEUS_SOURCE_DIR) + "/tests/fixtures/openclip");
  for (const auto& module :
       choose_trained(
           open_clip.architecture(), true, {.kind = Head::Kind::kZeroShot}, {.low_rank = true})
           .modules) {
    EXPECT_NE(module.find(".mlp."), std::string::npos) << module;
  }
}

TEST(SequencesAtATime, FallsWithTheirLength) {
  const auto model = tests::open_case("mistral");
  const auto batch = [](int64_t tokens) {
    const auto ids = at::zeros({1, 1}, at::kLong).expand({4096, tokens});
    return gradient::Labelled{.batch = {{"input_ids", ids}}, .wanted = ids};
  };
  const auto& architecture = model.architecture();
  const auto some = sequences_at_a_time(architecture, batch(512), c10::Device("cpu"));
  EXPECT_GT(some, 1);
  EXPECT_LT(some, 4096);
  EXPECT_LT(sequences_at_a_time(architecture, batch(1024), c10::Device("cpu")), some / 2 + 1);
  EXPECT_EQ(sequences_at_a_time(architecture, batch(2), c10::Device("cpu")), 4096);
  EXPECT_EQ(sequences_at_a_time(architecture, batch(100'000), c10::Device("cpu")), 1);
}

}  // namespace
}  // namespace theseus::train
