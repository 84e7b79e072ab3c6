#include "theseus/output/write_adapter.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

using Modules = std::map<std::string, update::LowRank>;
using tests::expect_parts;
using tests::ScratchDir;

at::Tensor product(const update::LowRank& delta) {
  return delta.scale * at::matmul(delta.up.to(at::kDouble), delta.down.to(at::kDouble));
}

void expect_same_deltas(const Modules& written, const Modules& read, double tolerance) {
  ASSERT_EQ(written.size(), read.size());
  for (const auto& [module, delta] : written) {
    ASSERT_TRUE(read.contains(module)) << module;
    EXPECT_TRUE(at::allclose(product(delta), product(read.at(module)), tolerance, tolerance))
        << module;
  }
}

nlohmann::json config_in(const ScratchDir& dir) {
  return nlohmann::json::parse(tests::read_bytes(dir / "adapter_config.json"));
}

update::LowRank random(int64_t out, int64_t rank, int64_t in, double scale) {
  return {.up = at::randn({out, rank}), .down = at::randn({rank, in}), .scale = scale};
}

TEST(WriteAdapter, EqualScalesLeaveTheFactorsAlone) {
  at::manual_seed(3);
  const Modules modules = {
      {"layers.0.q", random(4, 2, 6, 0.75)}, {"layers.1.q", random(4, 2, 6, 0.75)}};
  const ScratchDir dir;
  write_adapter(dir.path(), modules, {.task = "CAUSAL_LM", .base_model = "org/model"});
  const auto adapter = update::read_adapter(dir.path());
  EXPECT_EQ(adapter.task, "CAUSAL_LM");
  EXPECT_EQ(adapter.base_model, "org/model");
  for (const auto& [module, delta] : modules) {
    EXPECT_TRUE(at::equal(adapter.low_rank.at(module).up, delta.up));
    EXPECT_TRUE(at::equal(adapter.low_rank.at(module).down, delta.down));
    EXPECT_EQ(adapter.low_rank.at(module).scale, 0.75);
  }
  const auto config = config_in(dir);
  EXPECT_EQ(config.at("lora_alpha"), 1.5);
  EXPECT_EQ(config.at("target_modules"), (std::vector<std::string>{"layers.0.q", "layers.1.q"}));
  for (const char* key : {"modules_to_save", "layers_to_transform", "revision"}) {
    EXPECT_TRUE(config.at(key).is_null()) << key;
  }
  EXPECT_EQ(config.at("peft_type"), "LORA");
  EXPECT_EQ(config.at("bias"), "none");
  EXPECT_EQ(config.at("fan_in_fan_out"), false);
  EXPECT_EQ(config.at("inference_mode"), true);
}

TEST(WriteAdapter, MixedRanksAndScalesComeBackAsTheSameDeltas) {
  at::manual_seed(4);
  const Modules modules = {
      {"a", random(4, 1, 6, 0.3)}, {"b.c", random(5, 3, 2, -1.7)}, {"d", random(2, 2, 2, 0)}};
  const ScratchDir dir;
  write_adapter(dir.path(), modules);
  const auto adapter = update::read_adapter(dir.path());
  EXPECT_EQ(adapter.rank, 3);
  EXPECT_EQ(adapter.alpha, 3);
  EXPECT_TRUE(adapter.task.empty());
  expect_same_deltas(modules, adapter.low_rank, 1e-6);
  EXPECT_EQ(config_in(dir).at("lora_alpha").type(), nlohmann::json::value_t::number_unsigned);
}

TEST(WriteAdapter, MixedRanksOfOneScaleAreOnlyPadded) {
  at::manual_seed(5);
  const Modules modules = {{"a", random(4, 1, 6, 2)}, {"b", random(5, 3, 2, 2)}};
  const ScratchDir dir;
  write_adapter(dir.path(), modules);
  const auto adapter = update::read_adapter(dir.path());
  EXPECT_EQ(adapter.alpha, 6);
  EXPECT_TRUE(at::equal(adapter.low_rank.at("a").up.narrow(1, 0, 1), modules.at("a").up));
  EXPECT_EQ(adapter.low_rank.at("a").up.narrow(1, 1, 2).abs().max().item<float>(), 0);
  expect_same_deltas(modules, adapter.low_rank, 0);
}

TEST(WriteAdapter, HalfPrecisionStaysUnlessAScaleWouldBeRounded) {
  at::manual_seed(6);
  Modules modules = {
      {"a", random(4, 2, 6, 0.5)}, {"b", random(4, 2, 6, 0.3)}, {"c", random(4, 2, 6, 0.5)}};
  for (auto& [module, delta] : modules) {
    delta.up = delta.up.to(at::kBFloat16);
    delta.down = delta.down.to(at::kBFloat16);
  }
  const ScratchDir dir;
  write_adapter(dir.path(), modules);
  const auto adapter = update::read_adapter(dir.path());
  EXPECT_EQ(adapter.low_rank.at("a").up.scalar_type(), at::kBFloat16);
  EXPECT_EQ(adapter.low_rank.at("b").up.scalar_type(), at::kFloat);
  EXPECT_EQ(adapter.low_rank.at("b").down.scalar_type(), at::kBFloat16);
  expect_same_deltas(modules, adapter.low_rank, 1e-6);
}

// PEFT's rule for a list of target modules and of excluded ones.
bool adapted_by_peft(const nlohmann::json& config, const std::string& module) {
  const auto listed = [&](const char* key) {
    const auto names = config.value(key, std::vector<std::string>());
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return module == name || module.ends_with("." + name);
    });
  };
  return listed("target_modules") && !listed("exclude_modules");
}

TEST(WriteAdapter, ModulesThatEndInAnAdaptedPathAreExcluded) {
  const std::vector<std::string> all = {
      "visual.blocks.0.fc", "blocks.0.fc", "blocks.1.fc", "visual.blocks.1.fc",
      "other_blocks.0.fc"};
  const Modules modules = {
      {"blocks.0.fc", random(2, 1, 2, 1)},
      {"blocks.1.fc", random(2, 1, 2, 1)},
      {"visual.blocks.1.fc", random(2, 1, 2, 1)}};
  const ScratchDir dir;
  write_adapter(dir.path(), modules, {.task = {}, .base_model = {}, .modules = all});
  const auto config = config_in(dir);
  EXPECT_EQ(config.at("exclude_modules"), std::vector<std::string>{"visual.blocks.0.fc"});
  for (const auto& module : all) {
    EXPECT_EQ(adapted_by_peft(config, module), modules.contains(module)) << module;
  }
  update::read_adapter(dir.path());
}

TEST(WriteAdapter, AnAdapterOfPeftWrittenAgainComputesTheSame) {
  const std::string name = "adapted_llama";
  const auto given = update::read_adapter(tests::case_path(name + "_adapter"));
  const ScratchDir dir;
  write_adapter(dir.path(), given.low_rank);
  const auto again = update::read_adapter(dir.path());
  expect_same_deltas(given.low_rank, again.low_rank, 1e-6);
  auto model = tests::open_case(name);
  const auto inputs = tests::case_inputs(name + "_adapter");
  const auto before = model.forward(inputs).at("logits");
  model.attach(given);
  const auto expected = model.forward(inputs).at("logits");
  model.attach(again);
  const auto logits = model.forward(inputs).at("logits");
  EXPECT_TRUE(at::allclose(logits, expected, 1e-4, 1e-5));
  EXPECT_FALSE(at::allclose(logits, before, 1e-3, 1e-4));
}

// The config that PEFT 0.21 wrote has every field that we write, with a value of the same kind.
TEST(WriteAdapter, EveryFieldIsOneOfPeft) {
  const auto peft = nlohmann::json::parse(
      tests::read_bytes(tests::case_path("adapted_llama_adapter") / "adapter_config.json"));
  const ScratchDir dir;
  write_adapter(
      dir.path(), {{"a", random(2, 1, 2, 1)}},
      {.task = "CAUSAL_LM", .base_model = "m", .modules = {"x.a"}});
  const auto config = config_in(dir);
  for (const auto& [key, value] : config.items()) {
    EXPECT_TRUE(peft.contains(key)) << key;
    const bool same_kind =
        peft[key].type() == value.type() || peft[key].is_null() || value.is_null();
    EXPECT_TRUE(same_kind) << key;
  }
}

TEST(WriteAdapter, WholeTensorsComeBack) {
  const ScratchDir dir;
  const auto head = at::randn({3, 6});
  write_adapter(
      dir.path(), {{"encoder.q", random(4, 2, 6, 1)}},
      {.task = "SEQ_CLS",
       .saved = {{"classifier.weight", head}, {"classifier.bias", at::ones({3})}}});
  EXPECT_EQ(config_in(dir).at("modules_to_save"), std::vector<std::string>{"classifier"});
  const auto adapter = update::read_adapter(dir.path());
  EXPECT_EQ(adapter.modules_to_save, std::vector<std::string>{"classifier"});
  ASSERT_EQ(adapter.saved.size(), 2);
  EXPECT_TRUE(at::equal(adapter.saved.at("classifier.weight"), head));
}

TEST(WriteAdapter, RefusesWhatIsNotFiniteByName) {
  const ScratchDir dir;
  const auto fails = [&](const update::LowRank& delta) {
    return tests::error_of<NumericError>([&] {
      write_adapter(dir.path(), {{"module", delta}, {"other", random(2, 1, 2, 3)}});
    });
  };
  expect_parts(fails(random(2, 1, 2, INFINITY)), "module");
  expect_parts(fails({.up = at::full({2, 1}, std::nanf("")), .down = at::ones({1, 2})}), "module");
  expect_parts(
      fails({.up = at::full({2, 1}, 3e38F), .down = at::ones({1, 2}), .scale = 10}), "module",
      "beyond Float");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  tests::error_of<InternalError>([&] {
    write_adapter(dir.path(), {{"module", {.up = at::ones({2, 3}), .down = at::ones({2, 2})}}});
  });
  tests::error_of<InternalError>([&] { write_adapter(dir.path(), {}); });
}

}  // namespace
}  // namespace theseus::output
