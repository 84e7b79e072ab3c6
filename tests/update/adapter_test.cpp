#include "theseus/update/adapter.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "theseus/checkpoint/write.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::update {
namespace {

using Tensors = std::vector<std::pair<std::string, at::Tensor>>;

const Tensors kTensors = {
    {"base_model.model.layers.0.q.lora_A.weight", at::ones({2, 6})},
    {"base_model.model.layers.0.q.lora_B.weight", at::ones({4, 2})},
};

// An adapter of rank 2 and alpha 8 whose config is changed by `change`, as JSON.
class TinyAdapter {
 public:
  explicit TinyAdapter(const char* change = "{}", const Tensors& tensors = kTensors) {
    auto config = nlohmann::json::parse(
        R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, "bias": "none",
            "target_modules": ["q"], "use_dora": false, "loftq_config": {}})");
    config.merge_patch(nlohmann::json::parse(change));
    directory_.file("adapter_config.json", config.dump());
    checkpoint::write_safetensors(directory_ / "adapter_model.safetensors", tensors);
  }
  Adapter read() const { return read_adapter(directory_.path()); }
  std::string refusal() const {
    return tests::error_of([&] { read(); });
  }

 private:
  tests::ScratchDir directory_;
};

TEST(Adapter, ScalesByAlphaOverRank) {
  const auto adapter = TinyAdapter().read();
  ASSERT_EQ(adapter.low_rank.size(), 1U);
  EXPECT_EQ(adapter.low_rank.at("layers.0.q").scale, 4);
  EXPECT_EQ(adapter.parameters(), 20);
}

TEST(Adapter, ScalesByAlphaOverRootOfRankWhenRankStabilised) {
  const auto adapter = TinyAdapter(R"({"use_rslora": true})").read();
  EXPECT_DOUBLE_EQ(adapter.low_rank.at("layers.0.q").scale, 8 / std::sqrt(2.0));
}

TEST(Adapter, TakesAlphaAndRankFromTheFirstPatternThatMatchesTheEndOfThePath) {
  EXPECT_EQ(
      TinyAdapter(R"({"alpha_pattern": {"q": 3}})").read().low_rank.begin()->second.scale, 1.5);
  EXPECT_EQ(
      TinyAdapter(R"({"alpha_pattern": {"layers\\.[0-9]\\.q": 3}})")
          .read()
          .low_rank.begin()
          ->second.scale,
      1.5);
  EXPECT_EQ(
      TinyAdapter(R"({"alpha_pattern": {"s.0.q": 3}})").read().low_rank.begin()->second.scale, 4);
  EXPECT_EQ(
      TinyAdapter(R"({"r": 7, "rank_pattern": {"q": 2}})").read().low_rank.begin()->second.scale,
      4);
}

TEST(Adapter, TakesTheFirstOfSeveralPatternsInTheOrderOfTheFile) {
  const auto scale = [](const char* order) {
    const tests::ScratchDir directory;
    directory.file(
        "adapter_config.json",
        std::string(R"({"peft_type": "LORA", "r": 2, "lora_alpha": 8, "alpha_pattern": )") + order +
            "}");
    checkpoint::write_safetensors(directory / "adapter_model.safetensors", kTensors);
    return read_adapter(directory.path()).low_rank.begin()->second.scale;
  };
  EXPECT_EQ(scale(R"({"q": 3, "layers.0.q": 5, "0.q": 7})"), 1.5);
  EXPECT_EQ(scale(R"({"layers.0.q": 5, "q": 3})"), 2.5);
  EXPECT_EQ(scale(R"({"z": 1, "layers.*": 9, "layers.0.q": 5})"), 4.5);
}

TEST(Adapter, ReadsTheMagnitudesOfDora) {
  for (const char* ending : {"", ".weight"}) {
    auto tensors = kTensors;
    const auto name = std::string("base_model.model.layers.0.q.lora_magnitude_vector") + ending;
    tensors.emplace_back(name, at::full({4}, 2.0));
    const auto adapter = TinyAdapter(R"({"use_dora": true})", tensors).read();
    ASSERT_TRUE(adapter.is_dora());
    const auto base = at::eye(4, 6);
    const auto merged = with_magnitude(
        base, adapter.low_rank.at("layers.0.q"), adapter.magnitudes.at("layers.0.q"));
    const auto norms = at::linalg_vector_norm(merged, 2, at::IntArrayRef{1});
    EXPECT_TRUE(at::allclose(norms, at::full({4}, 2.0)));
    const auto sum = base + adapter.low_rank.at("layers.0.q").product();
    EXPECT_TRUE(at::allclose(merged[1] / 2, sum[1] / sum[1].norm()));
  }
  auto tensors = kTensors;
  tensors.emplace_back("base_model.model.layers.0.q.lora_magnitude_vector", at::ones({3}));
  tests::expect_parts(
      TinyAdapter(R"({"use_dora": true})", tensors).refusal(), "3 numbers", "4 outputs");
  EXPECT_THROW(
      with_magnitude(at::zeros({2, 3}), {at::zeros({2, 1}), at::ones({1, 3})}, at::ones({2})),
      InputError);
}

TEST(Adapter, RefusesARankThatTheFileContradicts) {
  tests::expect_parts(TinyAdapter(R"({"r": 3})").refusal(), "layers.0.q", "rank 2", "3");
}

TEST(Adapter, RefusesEveryVariantByName) {
  for (const char* change :
       {R"({"use_dora": true})", R"({"lora_bias": true})", R"({"bias": "all"})",
        R"({"peft_type": "IA3"})", R"({"use_qalora": true})", R"({"init_lora_weights": "pissa"})",
        R"({"layer_replication": [[0, 1]]})", R"({"corda_config": {"x": 1}})",
        R"({"target_parameters": ["experts.w"]})", R"({"trainable_token_indices": [1]})",
        R"({"megatron_config": {"x": 1}})"}) {
    SCOPED_TRACE(change);
    const auto named = nlohmann::json::parse(change).begin().key();
    tests::expect_parts(TinyAdapter(change).refusal(), "adapter_config.json: " + named);
  }
}

TEST(Adapter, RefusesTensorsThatAreNotPlainLora) {
  auto tensors = kTensors;
  tensors.emplace_back("base_model.model.layers.0.q.lora_magnitude_vector", at::ones({4}));
  tests::expect_parts(TinyAdapter("{}", tensors).refusal(), "lora_magnitude_vector");
  tests::expect_parts(
      TinyAdapter("{}", {kTensors[0]}).refusal(), "layers.0.q has lora_A but not lora_B");
}

TEST(Adapter, ReadsModulesToSaveInBothSpellings) {
  for (const char* name :
       {"base_model.model.score.weight", "base_model.model.score.modules_to_save.weight"}) {
    auto tensors = kTensors;
    tensors.emplace_back(name, at::ones({3, 6}));
    const auto adapter = TinyAdapter(R"({"modules_to_save": ["score"]})", tensors).read();
    EXPECT_TRUE(adapter.saved.contains("score.weight"));
    tests::expect_parts(TinyAdapter("{}", tensors).refusal(), name);
  }
}

TEST(Adapter, RefusesAPatternThatIsNotARegularExpression) {
  tests::expect_parts(
      TinyAdapter(R"({"alpha_pattern": {"q(": 3}})").refusal(), "alpha_pattern: 'q('",
      "regular expression");
}

}  // namespace
}  // namespace theseus::update
