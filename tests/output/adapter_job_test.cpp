// An adapter in and an adapter out is the same as dense in and dense out.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/model/golden.h"
#include "theseus/model/model.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::Planting;

using Tensors = std::map<std::string, at::Tensor>;

// scale * up down of every layer that the adapter changes, by the tensor's own name.
Tensors deltas(const fs::path& model_path, const fs::path& adapter) {
  auto model = model::Model::open(model_path);
  model.attach(update::read_adapter(adapter));
  Tensors result;
  for (const auto& layer : model.architecture().linears) {
    if (const auto* factors = model.weights().find_low_rank(layer.module)) {
      result[layer.weight] =
          at::mm(factors->up.to(at::kFloat), factors->down.to(at::kFloat)) * factors->scale;
    }
  }
  return result;
}

// The same change as a state dict of the changed tensors alone.
void write_dense(const fs::path& model_path, const fs::path& adapter, const fs::path& path) {
  const auto model = model::Model::open(model_path);
  std::vector<std::pair<std::string, at::Tensor>> tuned;
  for (const auto& [name, delta] : deltas(model_path, adapter)) {
    tuned.emplace_back(name, model.checkpoint().tensor(name).to(at::kFloat) + delta);
  }
  checkpoint::write_safetensors(path, tuned);
}

void expect_adapter_like_dense(
    JobOptions options, const fs::path& adapter, const fs::path& scratch) {
  const auto dense = scratch / "dense.safetensors";
  write_dense(options.source, adapter, dense);
  options.tuned = dense;
  options.out = scratch / "dense";
  tests::run(options);
  const auto expected = tests::update_of(options.out);
  options.tuned = adapter;
  options.write = "";  // an adapter for an adapter
  options.out = scratch / "adapter";
  tests::run(options);
  const auto found = deltas(options.target, options.out);
  int64_t carried = 0;
  for (const auto& [name, delta] : expected) {
    if (delta.count_nonzero().item<int64_t>() == 0) {
      EXPECT_FALSE(found.contains(name)) << name;  // a head
      continue;
    }
    ++carried;
    ASSERT_TRUE(found.contains(name)) << name;
    // The dense delta is a difference of float32 numbers larger than itself.
    EXPECT_LT(tests::frobenius_error(found.at(name), delta), 1e-5) << name;
  }
  EXPECT_EQ(found.size(), static_cast<size_t>(carried));
  EXPECT_GT(carried, 3);
}

fs::path tree_adapter() {
  return tests::case_path("adapted_llama_adapter");
}

JobOptions widened_llama(const tests::ScratchDir& scratch) {
  const auto planted = tests::plant("adapted_llama", Planting::kWidened, scratch.path());
  return tests::planted_job(planted, scratch.path());
}

TEST(AdapterJob, CarriesFactorsLikeTheirProduct) {
  const c10::NoGradGuard no_gradients;
  for (const bool heads : {false, true}) {
    const tests::ScratchDir scratch;
    auto options = widened_llama(scratch);
    options.heads = heads;  // this adapter changes lm_head, too
    expect_adapter_like_dense(options, tree_adapter(), scratch.path());
  }
}

TEST(AdapterJob, GoesByTheStreamsMapLikeItsProduct) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto options = widened_llama(scratch);
  options.align.maps.stream = true;
  expect_adapter_like_dense(options, tree_adapter(), scratch.path());
}

TEST(AdapterJob, SaysWhereTheStreamMakesNoDifference) {
  const c10::NoGradGuard no_gradients;
  const std::string note = "method stream makes no difference";
  for (const auto* module : {"q_proj", "o_proj"}) {
    const tests::ScratchDir scratch;
    auto options = widened_llama(scratch);
    options.align.maps.stream = true;
    const auto name = c10::str("model.layers.0.self_attn.", module, ".weight");
    const auto base = model::Model::open(options.source).checkpoint().tensor(name);
    options.tuned = scratch / "tuned.safetensors";
    checkpoint::write_safetensors(options.tuned, {{name, base.to(at::kFloat) * 1.1}});
    const auto notes = tests::run(options).at("notes").dump();
    EXPECT_EQ(notes.find(note) != std::string::npos, module == std::string("q_proj")) << notes;
  }
}

TEST(AdapterJob, CarriesTheRecordedAdapterLikeItsProduct) {
  if (!tests::has_shared()) {
    GTEST_SKIP() << "../shared is not there";
  }
  const c10::NoGradGuard no_gradients;
  const auto shared = fs::path(THESEUS_SOURCE_DIR) / "../shared/golden";
  const tests::ScratchDir scratch;
  auto options = widened_llama(scratch);
  options.source = shared / "lora_base";
  options.target = shared / "lora_base";
  tests::write_inputs(
      options.calibration, tests::planted_calibration(model::Model::open(options.source), 256, 3));
  expect_adapter_like_dense(options, shared / "lora_adapter", scratch.path());
}

TEST(AdapterJob, NoiseHasNoFactors) {
  const c10::NoGradGuard no_gradients;
  for (const char* method : {"random", "random_transported"}) {
    const tests::ScratchDir scratch;
    auto options = widened_llama(scratch);
    options.tuned = tree_adapter();
    options.align.method = method;
    options.write = "adapter";
    tests::expect_parts(
        tests::error_of<InputError>([&] { tests::run(options); }), "noise of full rank");
    options.write = "";
    EXPECT_EQ(tests::run(options).at("write"), "model");
  }
}

TEST(AdapterJob, KeepsRankScaleAndNorms) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto options = widened_llama(scratch);
  options.tuned = tree_adapter();
  options.write = "adapter";
  const auto record = tests::run(options);
  for (const auto& row : record.at("parameters")) {
    if (row.contains("source_norm")) {
      EXPECT_NEAR(
          row.at("target_norm").get<double>() / row.at("source_norm").get<double>(), 1, 1e-6)
          << row;
      const std::string name = row.at("parameter");
      const bool down = name.ends_with("down_proj.weight");
      EXPECT_EQ(row.at("rank"), down ? 5 : name.ends_with("1.self_attn.q_proj.weight") ? 2 : 3);
    }
  }
}

TEST(AdapterJob, MergesIntoAModelLikeThePassWithTheAdapter) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto options = widened_llama(scratch);
  options.tuned = tree_adapter();
  options.alpha = 1.5;
  options.write = "adapter";
  tests::run(options);
  auto target = model::Model::open(options.target);
  target.attach(update::read_adapter(options.out));
  const auto inputs = tests::planted_calibration(target, 4, 5);
  const auto attached = target.forward(inputs);
  options.write = "model";
  options.out = scratch / "merged";
  tests::run(options);
  const auto merged = model::Model::open(options.out).forward(inputs);
  for (const auto& [name, value] : attached) {
    EXPECT_LT(model::relative_error(merged.at(name), value), 1e-5) << name;  // float32 passes
  }
}

}  // namespace
}  // namespace theseus::output
