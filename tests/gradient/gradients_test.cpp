// Gradients through the forward code of every family against differences of the loss, in float64.

#include "theseus/gradient/gradients.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/model/attach.h"

#include "tests/gradient/weight_gradients.h"
#include "tests/support/cases.h"
#include "tests/support/expect_error.h"

namespace theseus::gradient {
namespace {

struct Subject {
  const char* name;  // of a golden case
  enum Kind { kClasses, kPrompts, kTokens, kAnswers } kind;
};

std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << subject.name;
}

constexpr int64_t kClassCount = 5;

model::Model opened(const std::string& name, at::ScalarType dtype = at::kDouble) {
  return model::Model::open(tests::case_path(name), {.placement = {.dtype = dtype}});
}

// The case's own inputs, with something to say to each.
Labelled labelled(const Subject& subject) {
  auto batch = tests::case_inputs(subject.name);
  const auto n = batch.begin()->second.size(0);
  at::manual_seed(3);
  if (subject.kind == Subject::kPrompts) {
    batch = {{"pixel_values", batch.at("pixel_values")}};
  }
  if (subject.kind == Subject::kClasses || subject.kind == Subject::kPrompts) {
    return {.batch = batch, .labels = at::randint(kClassCount, {n}, at::kLong)};
  }
  const auto& ids = batch.at(subject.kind == Subject::kAnswers ? "decoder_input_ids" : "input_ids");
  auto wanted = ids.roll({-1}, {1});
  wanted.select(1, -1).fill_(kIgnored);
  if (subject.kind == Subject::kTokens && batch.contains("attention_mask")) {
    wanted.masked_fill_(batch.at("attention_mask") == 0, kIgnored);
  }
  return {.batch = batch, .wanted = wanted};
}

Loss loss_of(const Subject& subject, model::Model& model) {
  switch (subject.kind) {
    case Subject::kClasses:
      return class_loss();
    case Subject::kPrompts: {
      const auto width = model.forward(labelled(subject).batch).begin()->second.size(1);
      const auto classes = at::randn({kClassCount, width}, at::kDouble);
      return prompt_loss(classes / classes.norm(2, 1, true), 10);
    }
    default:
      return token_loss();
  }
}

// A head where the case has none.
void give_head(const Subject& subject, Trainable& trainable) {
  const auto& architecture = trainable.model().architecture();
  if (subject.kind == Subject::kClasses && head_classes(trainable.model()) == 0) {
    trainable.train(
        architecture.head + ".weight", at::randn({kClassCount, architecture.head_width}));
    trainable.train(architecture.head + ".bias", at::randn({kClassCount}));
  }
}

class EveryKind : public testing::TestWithParam<Subject> {};

TEST_P(EveryKind, GradientIsTheSlope) {
  auto model = opened(GetParam().name);
  const auto batch = labelled(GetParam());
  at::manual_seed(5);
  Trainable trainable(model);
  const auto images = batch.batch.contains("pixel_values");
  for (const auto& tensor : tensors_reached(model.architecture(), images)) {
    trainable.train(tensor);
  }
  give_head(GetParam(), trainable);
  const auto loss = loss_of(GetParam(), model);
  add_gradients(trainable, loss, batch);

  constexpr double kStep = 1e-5;
  int reached = 0;
  for (const auto& item : trainable.leaves()) {
    const auto& name = item.first;
    const auto& leaf = item.second;
    const auto gradient = leaf.grad();
    if (!gradient.defined()) {
      continue;
    }
    ++reached;
    const auto direction = at::randn_like(leaf.detach());
    const auto at_distance = [&, &leaf = leaf](double step) {
      const c10::NoGradGuard no_gradients;
      leaf.detach().add_(direction, step);
      const auto value = measure(model, loss, batch).loss;
      leaf.detach().sub_(direction, step);
      return value;
    };
    const auto slope = (at_distance(kStep) - at_distance(-kStep)) / (2 * kStep);
    const auto expected = (gradient * direction).sum().item<double>();
    const auto size = gradient.norm().item<double>() * direction.norm().item<double>();
    // Differences err by step^2 times the third derivative, and by eps / step.
    EXPECT_NEAR(slope, expected, 1e-4 * size + 1e-9) << name;
  }
  EXPECT_GT(reached, 10);
}

TEST_P(EveryKind, PartsAddUp) {
  auto model = opened(GetParam().name);
  const auto batch = labelled(GetParam());
  ASSERT_GT(batch.size(), 1);
  Trainable trainable(model);
  const auto names = tensors_reached(model.architecture(), batch.batch.contains("pixel_values"));
  for (const auto& tensor : names) {
    trainable.train(tensor);
  }
  at::manual_seed(5);
  give_head(GetParam(), trainable);
  const auto loss = loss_of(GetParam(), model);
  const auto whole = add_gradients(trainable, loss, batch);
  std::map<std::string, at::Tensor> expected;
  for (const auto& [name, leaf] : trainable.leaves()) {
    expected[name] = leaf.grad().defined() ? leaf.grad().clone() : at::Tensor();
  }
  trainable.forget_gradients();
  const auto parts = add_gradients(trainable, loss, batch, 1);
  EXPECT_NEAR(parts.loss, whole.loss, 1e-12 * whole.loss);
  EXPECT_EQ(parts.count, whole.count);
  EXPECT_EQ(parts.right, whole.right);
  EXPECT_EQ(whole.count, batch.asked());
  for (const auto& [name, leaf] : trainable.leaves()) {
    ASSERT_EQ(leaf.grad().defined(), expected[name].defined()) << name;
    if (leaf.grad().defined()) {
      EXPECT_TRUE(at::allclose(leaf.grad(), expected[name], 1e-9, 1e-12)) << name;
    }
  }
}

// dL/dW of a linear layer is the sum over rows of dL/dy x^T, and dL/db that of dL/dy.
TEST_P(EveryKind, OutputGradientsMakeTheBiases) {
  auto model = opened(GetParam().name);
  const auto batch = labelled(GetParam());
  if (GetParam().kind == Subject::kClasses && head_classes(model) == 0) {
    at::manual_seed(5);
    const auto& head = model.architecture().head;
    model.weights().replace(
        head + ".weight", at::randn({kClassCount, model.architecture().head_width}));
    model.weights().replace(head + ".bias", at::randn({kClassCount}));
  }
  const auto loss = loss_of(GetParam(), model);
  const auto outputs = output_gradients(model, loss, batch);
  int compared = 0;
  for (const auto& layer : model.architecture().linears) {
    const auto found = outputs.find(layer.module);
    if (found == outputs.end()) {
      continue;
    }
    ++compared;
    const auto& [output, gradient] = found->second;
    EXPECT_EQ(output.sizes(), gradient.sizes());
    EXPECT_FALSE(output.requires_grad());
    EXPECT_GT(gradient.abs().max().item<double>(), 0) << layer.module;
  }
  EXPECT_GT(compared, 4);
  model.detach();
  if (GetParam().kind == Subject::kClasses) {
    return;  // the head is gone
  }
  const auto weights = weight_gradients(model, loss, batch);
  for (const auto& layer : model.architecture().linears) {
    if (layer.bias.empty() || !outputs.contains(layer.module)) {
      continue;
    }
    const auto& gradient = outputs.at(layer.module).gradient;
    const auto sum = gradient.reshape({-1, gradient.size(-1)}).sum(0);
    EXPECT_TRUE(at::allclose(sum, weights.at(layer.bias), 1e-8, 1e-12)) << layer.module;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Families,
    EveryKind,
    testing::Values(
        Subject{"bert_bare", Subject::kClasses},
        Subject{"vit_bare", Subject::kClasses},
        Subject{"clip_legacy_end", Subject::kPrompts},
        Subject{"llama_left_padded", Subject::kTokens},
        Subject{"qwen3_bias", Subject::kTokens},
        Subject{"mistral", Subject::kTokens},
        Subject{"t5_own_head", Subject::kAnswers},
        Subject{"t5_tied_gated_silu", Subject::kAnswers}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(WeightGradients, LeaveTheModelAsItWas) {
  auto model = opened("mistral", at::kFloat);
  const auto batch = labelled({"mistral", Subject::kTokens});
  const auto before = model.forward(batch.batch).at("logits");
  const auto gradients = weight_gradients(model, token_loss(), batch);
  EXPECT_TRUE(at::equal(model.forward(batch.batch).at("logits"), before));
  EXPECT_FALSE(model.forward(batch.batch).at("logits").requires_grad());
  for (const auto& [tensor, shape] : model::tensor_shapes(model.architecture())) {
    EXPECT_EQ(gradients.at(tensor).sizes(), at::IntArrayRef(shape)) << tensor;
  }
}

TEST(WeightGradients, OfSomeTensorsAlone) {
  auto model = opened("mistral");
  const auto batch = labelled({"mistral", Subject::kTokens});
  const auto all = weight_gradients(model, token_loss(), batch);
  const std::string one = model.architecture().linears.front().weight;
  const auto some = weight_gradients(model, token_loss(), batch, {one});
  ASSERT_EQ(some.size(), 1);
  EXPECT_TRUE(at::allclose(some.at(one), all.at(one), 1e-12, 1e-15));
  tests::expect_parts(
      tests::error_of([&] { weight_gradients(model, token_loss(), batch, {"x"}); }), "no tensor x");
}

// In bfloat16 the leaves stay float32, and every pass rounds them anew.
TEST(Trainable, LeavesAreWiderThanThePass) {
  auto model = opened("mistral", at::kBFloat16);
  const auto batch = labelled({"mistral", Subject::kTokens});
  auto precise = opened("mistral", at::kFloat);
  const auto expected = weight_gradients(precise, token_loss(), batch);
  Trainable trainable(model);
  const std::string name = model.architecture().linears.front().weight;
  trainable.train(name);
  const auto& leaf = trainable.leaves().at(name);
  EXPECT_EQ(leaf.scalar_type(), at::kFloat);
  const auto before = add_gradients(trainable, token_loss(), batch, 1).loss;
  const auto cosine =
      at::cosine_similarity(leaf.grad().flatten(), expected.at(name).flatten(), 0).item<double>();
  EXPECT_GT(cosine, 0.99);
  leaf.detach().mul_(3);
  EXPECT_NE(add_gradients(trainable, token_loss(), batch, 1).loss, before);
}

// Only the end of the text is asked for, so padding and the rest give no gradient.
TEST(Loss, CountsWhatIsAskedFor) {
  const auto logits = at::randn({2, 3, 7}, at::kDouble);
  const auto wanted =
      at::tensor(std::vector<int64_t>{kIgnored, 4, kIgnored, 1, kIgnored, kIgnored}).view({2, 3});
  const auto judged = token_loss()({{"logits", logits}}, {.wanted = wanted});
  const auto log_p = logits.log_softmax(2);
  EXPECT_EQ(judged.count, 2);
  EXPECT_NEAR(judged.sum.item<double>(), -(log_p[0][1][4] + log_p[1][0][1]).item<double>(), 1e-12);
}

TEST(Loss, RefusesWhatDoesNotGoTogether) {
  const auto logits = at::randn({2, 3});
  tests::expect_parts(
      tests::error_of([&] {
        class_loss()({{"last_hidden_state", logits}}, {});
      }),
      "no classification head");
  tests::expect_parts(
      tests::error_of([&] {
        class_loss()({{"logits", logits}}, {});
      }),
      "no labels");
  tests::expect_parts(
      tests::error_of([&] {
        prompt_loss(logits, 1)({{"logits", logits}}, {});
      }),
      "such as CLIP");
  tests::expect_parts(
      tests::error_of([&] {
        token_loss()({{"logits", logits}}, {});
      }),
      "language model");
}

TEST(TensorsReached, OfTwoTowersOne) {
  const auto model = opened("clip_legacy_end");
  for (const bool images : {true, false}) {
    const auto reached = tensors_reached(model.architecture(), images);
    EXPECT_FALSE(reached.empty());
    for (const auto& name : reached) {
      EXPECT_EQ(name.starts_with("vision_model.") || name == "visual_projection.weight", images)
          << name;
    }
  }
  const auto single = opened("mistral");
  std::set<std::string> all;
  for (const auto& parameter : single.architecture().parameters) {
    all.insert(parameter.tensor);
  }
  EXPECT_EQ(tensors_reached(single.architecture(), false).size(), all.size());
}

}  // namespace
}  // namespace theseus::gradient
