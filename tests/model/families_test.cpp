// Properties of single families.

#include <cmath>
#include <cstring>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/model/generate.h"
#include "theseus/model/golden.h"
#include "theseus/model/layers.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/openclip_case.h"
#include "tests/support/scratch_dir.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

TEST(OpenClip, AgreesWithTheSameWeightsAsHuggingFaceClip) {
  const c10::NoGradGuard no_gradients;
  const tests::OpenClipCase openclip;
  auto ours = Model::open(openclip.path()).forward(openclip.inputs());
  auto inputs = tests::case_inputs("clip_legacy_end");
  inputs.erase("attention_mask");
  const auto theirs = tests::open_case("clip_legacy_end").forward(inputs);
  EXPECT_LT(relative_error(normalised(ours.at("image_features")), theirs.at("image_embeds")), 1e-6);
  EXPECT_LT(relative_error(normalised(ours.at("text_features")), theirs.at("text_embeds")), 1e-6);
}

TEST(OpenClip, RunsOneTowerWhenOnlyItsInputIsGiven) {
  const c10::NoGradGuard no_gradients;
  const tests::OpenClipCase openclip;
  auto inputs = openclip.inputs();
  inputs.erase("text");
  const auto outputs = Model::open(openclip.path()).forward(inputs);
  EXPECT_EQ(outputs.size(), 1U);
  EXPECT_TRUE(outputs.contains("image_features"));
}

// Generation keeps keys and values; the same tokens come from running everything anew each time.
TEST(Greedy, GivesWhatRunningTheWholeSequenceEachTimeGives) {
  const c10::NoGradGuard no_gradients;
  auto model = tests::open_case("mistral");
  const Batch prompt = {{"input_ids", tests::case_inputs("mistral").at("input_ids")}};
  auto tokens = prompt.at("input_ids");
  for (int i = 0; i < 6; ++i) {
    const auto logits = model.forward({{"input_ids", tokens}}).at("logits");
    tokens = at::cat({tokens, logits.select(1, -1).argmax(-1, true)}, 1);
  }
  const auto kept = greedy(model, prompt, {.new_tokens = 6, .ignore_end = true});
  EXPECT_TRUE(at::equal(kept, tokens));
}

TEST(Greedy, OfAnEncoderDecoderGivesWhatRunningTheWholeSequenceEachTimeGives) {
  const c10::NoGradGuard no_gradients;
  auto model = tests::open_case("t5_own_head");
  auto batch = tests::case_inputs("t5_own_head");
  auto tokens = at::zeros({3, 1}, at::kLong);
  for (int i = 0; i < 6; ++i) {
    batch["decoder_input_ids"] = tokens;
    const auto logits = model.forward(batch).at("logits");
    tokens = at::cat({tokens, logits.select(1, -1).argmax(-1, true)}, 1);
  }
  const auto kept = greedy(model, batch, {.new_tokens = 6, .ignore_end = true});
  EXPECT_TRUE(at::equal(kept, tokens));
}

TEST(Greedy, DoesNotDependOnPaddingBeforeThePrompt) {
  const c10::NoGradGuard no_gradients;
  auto model = tests::open_case("llama_left_padded");
  const auto ids = tests::case_inputs("mistral").at("input_ids");
  const GreedyOptions options{.new_tokens = 5, .ignore_end = true};
  const auto bare = greedy(model, {{"input_ids", ids}}, options);
  const auto padding = at::zeros({ids.size(0), 3}, ids.options());
  const auto padded = greedy(
      model,
      {{"input_ids", at::cat({padding, ids}, 1)},
       {"attention_mask", at::cat({padding, at::ones_like(ids)}, 1)}},
      options);
  EXPECT_TRUE(at::equal(padded.narrow(1, 3, bare.size(1)), bare));
}

TEST(Greedy, IsRefusedByAModelWithoutALanguageHead) {
  auto model = tests::open_case("bert_bare");
  const auto message =
      tests::error_of([&] { greedy(model, tests::case_inputs("bert_bare"), {.new_tokens = 1}); });
  tests::expect_parts(message, "bert", "no language head");
}

TEST(Greedy, RefusesSettingsThatChangeTheNextToken) {
  const tests::ScratchDir directory;
  for (const auto& entry : fs::directory_iterator(tests::case_path("qwen2_padded"))) {
    fs::copy(entry.path(), directory / entry.path().filename().string());
  }
  auto model = Model::open(directory.path());
  const auto batch = tests::case_inputs("qwen2_padded");
  EXPECT_NO_THROW(greedy(model, batch, {.new_tokens = 1}));
  directory.file("generation_config.json", R"({"repetition_penalty": 1.05, "num_beams": 1})");
  model = Model::open(directory.path());
  const auto message = tests::error_of([&] { greedy(model, batch, {.new_tokens = 1}); });
  tests::expect_parts(message, "generation_config.json: repetition_penalty", "1.05");
}

// People fine-tune the bare encoder with a classification head in the adapter.
TEST(Adapters, BringTheHeadThatABareModelLacks) {
  const c10::NoGradGuard no_gradients;
  const auto whole = checkpoint::Checkpoint::open(tests::case_path("adapted_bert"));
  std::vector<std::pair<std::string, at::Tensor>> bare;
  for (const auto& info : whole.tensors()) {
    if (info.name.starts_with("bert.")) {
      bare.emplace_back(info.name.substr(5), whole.tensor(info.name));
    }
  }
  const tests::ScratchDir directory;
  checkpoint::write_safetensors(directory / "model.safetensors", bare);
  fs::copy(tests::case_path("adapted_bert") / "config.json", directory / "config.json");
  auto model = Model::open(directory.path());
  const auto golden =
      checkpoint::Checkpoint::open(tests::case_path("adapted_bert_adapter") / "golden.safetensors");
  const auto inputs = read_inputs(golden);
  EXPECT_FALSE(model.forward(inputs).contains("logits"));
  model.attach(update::read_adapter(tests::case_path("adapted_bert_adapter")));
  EXPECT_LT(
      relative_error(model.forward(inputs).at("logits"), golden.tensor("expect/logits")), 1e-5);
  model.detach();
  EXPECT_FALSE(model.forward(inputs).contains("logits"));
}

TEST(Attention, OfAQueryThatMaySeeNothingIsZero) {
  const auto q = at::randn({1, 2, 3, 4});
  auto allowed = at::ones({1, 1, 3, 3}, at::kBool);
  allowed.select(2, 1).fill_(false);
  const auto mixed = attend(q, q, q, {.scale = 0.5, .allowed = allowed});
  EXPECT_EQ(mixed.select(2, 1).abs().max().item<float>(), 0);
  EXPECT_TRUE(at::isfinite(mixed).all().item<bool>());
}

TEST(Attention, WithGroupedQueriesIsThatWithRepeatedKeys) {
  at::manual_seed(0);
  const auto q = at::randn({2, 6, 5, 4}, at::kDouble);
  const auto k = at::randn({2, 2, 7, 4}, at::kDouble);
  const auto v = at::randn({2, 2, 7, 4}, at::kDouble);
  const auto grouped = attend(q, k, v, {.scale = 0.5});
  const auto repeated =
      attend(q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), {.scale = 0.5});
  EXPECT_LT(relative_error(grouped, repeated), 1e-14);
}

TEST(Rotation, KeepsLengthsAndDependsOnDistanceAlone) {
  at::manual_seed(0);
  const auto q = at::randn({1, 1, 1, 8}, at::kDouble);
  const auto k = at::randn({1, 1, 1, 8}, at::kDouble);
  const auto frequencies = at::rand({1, 1, 1, 4}, at::kDouble);
  const auto product = [&](int64_t at_q, int64_t at_k) {
    return (rotate(q, frequencies * at_q) * rotate(k, frequencies * at_k)).sum().item<double>();
  };
  EXPECT_NEAR(rotate(q, frequencies * 5).norm().item<double>(), q.norm().item<double>(), 1e-12);
  EXPECT_NEAR(product(3, 1), product(9, 7), 1e-12);
  EXPECT_GT(std::abs(product(3, 1) - product(3, 2)), 1e-6);
}

// A copy of a case with one text replaced in its config.
class EditedCase {
 public:
  EditedCase(const std::string& name, const std::string& from, const std::string& to) {
    for (const auto& entry : fs::directory_iterator(tests::case_path(name))) {
      fs::copy(entry.path(), directory_ / entry.path().filename().string());
    }
    auto text = tests::read_bytes(directory_ / "config.json");
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    tests::write_bytes(directory_ / "config.json", text);
  }
  const fs::path& path() const { return directory_.path(); }
  std::string refusal() const {
    return tests::error_of([&] { Model::open(path()); });
  }

 private:
  tests::ScratchDir directory_;
};

TEST(Configs, ThatAreNotImplementedAreRefusedByName) {
  const struct {
    const char* name;
    const char* from;
    const char* to;
    std::vector<std::string> parts;
  } rows[] = {
      {"mistral", "\"silu\"", "\"mish\"", {"config.json: hidden_act", "'mish'", "silu"}},
      {"llama3_rope", "\"llama3\"", "\"yarn\"", {"rope_parameters.rope_type", "'yarn'"}},
      {"bert_bare", "\"gelu_new\"", "\"tanh\"", {"hidden_act", "'tanh'"}},
      {"bert_bare", "\"is_decoder\": false", "\"is_decoder\": true", {"is_decoder", "true"}},
      {"timm_headless", "\"token\"", "\"avg\"", {"global_pool", "\"avg\""}},
      {"timm_headless",
       "deit_tiny_patch16_224",
       "vit_base_patch16_siglip_224",
       {"architecture", "siglip"}},
      {"vit_bare", "\"tanh\"", "\"gelu\"", {"pooler_act", "gelu"}},
      {"mistral", "\"mistral\"", "\"gpt2\"", {"model_type", "gpt2", "llama", "openclip", "t5"}},
      {"mistral", "\"hidden_size\": 24", "\"hidden_size\": \"24\"", {"hidden_size", "integer"}},
      {"mistral", "\"hidden_size\": 24", "\"hidden_size\": 25", {"25"}},
      {"mistral",
       "\"num_hidden_layers\": 2",
       "\"num_hidden_layers\": 3",
       {"model.layers.2.input_layernorm.weight"}},
      {"mistral",
       "\"num_hidden_layers\": 2",
       "\"num_hidden_layers\": 1",
       {"model.layers.1.", "does not use"}},
      {"t5_own_head", "\"gated-gelu\"", "\"gated-mish\"", {"feed_forward_proj", "mish"}},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.to);
    const auto message = EditedCase(row.name, row.from, row.to).refusal();
    for (const auto& part : row.parts) {
      tests::expect_parts(message, part);
    }
  }
}

// Within its window sliding attention is full attention; beyond it, it is not implemented.
TEST(Llama, RefusesInputsLongerThanTheSlidingWindow) {
  const c10::NoGradGuard no_gradients;
  const auto inputs = tests::case_inputs("mistral");  // 10 tokens
  const auto whole = tests::open_case("mistral").forward(inputs).at("logits");
  const EditedCase wide("mistral", "\"sliding_window\": null", "\"sliding_window\": 10");
  EXPECT_TRUE(at::equal(Model::open(wide.path()).forward(inputs).at("logits"), whole));
  const EditedCase narrow("mistral", "\"sliding_window\": null", "\"sliding_window\": 9");
  auto model = Model::open(narrow.path());
  const auto message = tests::error_of([&] { model.forward(inputs); });
  tests::expect_parts(message, "10 tokens", "sliding_window 9", "not implemented");
}

TEST(Model, NamesTheWeightThatHoldsNan) {
  const tests::OpenClipCase openclip;
  const auto path = openclip.path() / "open_clip_model.safetensors";
  auto bytes = tests::read_bytes(path);
  const auto file = checkpoint::Checkpoint::open(path);
  const auto at = bytes.find("\"visual.proj\"");
  ASSERT_NE(at, std::string::npos);
  const auto offsets = bytes.find("\"data_offsets\":[", at) + 16;
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto begin = 8 + header + std::stoull(bytes.substr(offsets, 20));
  const uint32_t nan = 0x7fc00000;
  std::memcpy(bytes.data() + begin, &nan, sizeof(nan));
  tests::write_bytes(path, bytes);
  auto model = Model::open(openclip.path());
  const auto message = tests::error_of([&] { model.forward(openclip.inputs()); });
  tests::expect_parts(message, "visual.proj", "NaN");
}

}  // namespace
}  // namespace theseus::model
