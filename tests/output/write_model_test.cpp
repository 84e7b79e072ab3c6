#include "theseus/output/write_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/output/layout.h"
#include "theseus/output/side_files.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/openclip_case.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/torch_save.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using checkpoint::Checkpoint;
using tests::case_path;
using tests::error_of;
using tests::expect_parts;
using tests::read_bytes;
using tests::ScratchDir;
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

at::Tensor nothing(const std::string&) {
  return {};
}

bool same_bits(const at::Tensor& left, const at::Tensor& right) {
  const auto bytes = [](const at::Tensor& tensor) {
    const auto whole = tensor.contiguous();
    return std::string_view(static_cast<const char*>(whole.data_ptr()), whole.nbytes());
  };
  const auto first = left.contiguous();
  const auto second = right.contiguous();
  return left.sizes() == right.sizes() && left.scalar_type() == right.scalar_type() &&
         bytes(first) == bytes(second);
}

void expect_same_tensors(const Checkpoint& left, const Checkpoint& right) {
  ASSERT_EQ(left.tensors().size(), right.tensors().size());
  for (const auto& info : left.tensors()) {
    EXPECT_TRUE(same_bits(left.tensor(info.name), right.tensor(info.name))) << info.name;
  }
}

// Zeros of each tensor's shape.
Deltas zeros_of(const model::Model& target) {
  std::map<std::string, std::string> stored;
  for (const auto& parameter : target.architecture().parameters) {
    stored[parameter.tensor] = parameter.stored;
  }
  return [&target, stored](const std::string& tensor) {
    return at::zeros(target.checkpoint().info(stored.at(tensor)).shape);
  };
}

void copy_config(const std::string& from, const ScratchDir& to) {
  fs::copy_file(case_path(from) / "config.json", to / "config.json");
}

NamedTensors tensors_of(const fs::path& path) {
  const auto file = Checkpoint::open(path);
  NamedTensors tensors;
  for (const auto& info : file.tensors()) {
    tensors.emplace_back(info.name, file.tensor(info.name).clone());
  }
  return tensors;
}

TEST(WriteModel, WithoutDeltasEveryCaseIsCopiedBitForBit) {
  std::set<fs::path> seen;
  for (const auto& item : tests::golden_cases()) {
    if (!seen.insert(item.model).second) {
      continue;
    }
    SCOPED_TRACE(item.model);
    const auto target = model::Model::open(item.model);
    for (const auto& deltas : {Deltas(nothing), zeros_of(target)}) {
      const ScratchDir dir;
      const auto written = write_model(target, dir.path(), deltas);
      copy_side_files(target, dir.path());
      const auto again = model::Model::open(dir.path());
      expect_same_tensors(target.checkpoint(), again.checkpoint());
      EXPECT_EQ(written.norm, 0);
      EXPECT_EQ(written.rounding_loss, 0);
    }
  }
}

TEST(WriteModel, AFileOfTransformersIsTheSameFileAgain) {
  for (const char* name : {"llama_bfloat16", "t5_own_head"}) {
    const ScratchDir dir;
    const auto written = write_model(tests::open_case(name), dir.path(), nothing);
    for (const auto& file : written.files) {
      EXPECT_TRUE(read_bytes(dir / file) == read_bytes(case_path(name) / file)) << file;
    }
  }
}

TEST(WriteModel, ShardsKeepTheirNamesSplitAndIndex) {
  const ScratchDir dir;
  const auto written = write_model(tests::open_case("llama_bfloat16"), dir.path(), nothing);
  EXPECT_EQ(
      written.files, (std::vector<std::string>{
                         "model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                         "model-00003-of-00003.safetensors", "model.safetensors.index.json"}));
}

TEST(WriteModel, PyTorchFilesBecomeSafetensorsUnderTheLibrarysName) {
  for (const char* name : {"bert_old_bin", "timm_headless"}) {
    const ScratchDir dir;
    const auto written = write_model(tests::open_case(name), dir.path(), nothing);
    EXPECT_EQ(written.files, std::vector<std::string>{"model.safetensors"});
  }
  const ScratchDir from;
  const fs::path fixture = fs::path(THESEUS_SOURCE_DIR) / "tests/fixtures/openclip";
  tests::torch_save(from / "my.pt", tensors_of(fixture / "open_clip_model.safetensors"));
  const auto target =
      model::Model::open(from / "my.pt", {.config = fixture / "open_clip_config.json"});
  const ScratchDir dir;
  const auto written = write_model(target, dir.path(), nothing);
  EXPECT_EQ(written.files, std::vector<std::string>{"open_clip_model.safetensors"});
  expect_same_tensors(target.checkpoint(), Checkpoint::open(dir.path()));
}

TEST(WriteModel, ASafetensorsFileKeepsItsName) {
  const ScratchDir from;
  fs::copy_file(case_path("mistral") / "model.safetensors", from / "my weights.safetensors");
  const auto target = model::Model::open(
      from / "my weights.safetensors", {.config = case_path("mistral") / "config.json"});
  const ScratchDir dir;
  EXPECT_EQ(
      write_model(target, dir.path(), nothing).files,
      std::vector<std::string>{"my weights.safetensors"});
}

TEST(WriteModel, PyTorchShardsKeepTheirSplit) {
  const ScratchDir from;
  copy_config("mistral", from);
  NamedTensors halves[2];
  std::string map;
  for (const auto& [name, tensor] : tensors_of(case_path("mistral") / "model.safetensors")) {
    const size_t half = name.find("layers.0") == std::string::npos ? 1 : 0;
    halves[half].emplace_back(name, tensor);
    map += c10::str(
        map.empty() ? "" : ",", "\"", name, "\":\"pytorch_model-0000", half + 1, "-of-00002.bin\"");
  }
  tests::torch_save(from / "pytorch_model-00001-of-00002.bin", halves[0]);
  tests::torch_save(from / "pytorch_model-00002-of-00002.bin", halves[1]);
  from.file(
      "pytorch_model.bin.index.json",
      R"({"metadata":{"total_size":1},"weight_map":{)" + map + "}}");
  const auto target = model::Model::open(from.path());
  const ScratchDir dir;
  const auto written = write_model(target, dir.path(), nothing);
  EXPECT_EQ(
      written.files, (std::vector<std::string>{
                         "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                         "model.safetensors.index.json"}));
  const auto again = Checkpoint::open(dir.path());
  expect_same_tensors(target.checkpoint(), again);
  for (const auto& info : target.checkpoint().tensors()) {
    EXPECT_EQ(again.info(info.name).file, info.file) << info.name;
  }
  expect_parts(
      read_bytes(dir / "model.safetensors.index.json"),
      c10::str("\"total_size\": ", target.checkpoint().bytes()));
}

TEST(WriteModel, AddsAlphaTimesTheDeltaAndTheForwardPassChanges) {
  auto target = tests::open_case("llama_left_padded");
  const std::string changed = "model.layers.1.mlp.down_proj.weight";
  at::manual_seed(1);
  const auto delta = at::randn(target.checkpoint().info(changed).shape);
  const ScratchDir dir;
  std::vector<std::string> asked;
  const auto written = write_model(
      target, dir.path(),
      [&](const std::string& tensor) {
        asked.push_back(tensor);
        return tensor == changed ? delta : at::Tensor();
      },
      0.5);
  std::set<std::string> tensors;
  for (const auto& parameter : target.architecture().parameters) {
    tensors.insert(parameter.tensor);
  }
  EXPECT_EQ(std::set(asked.begin(), asked.end()), tensors);
  EXPECT_EQ(asked.size(), tensors.size());

  copy_side_files(target, dir.path());
  auto again = model::Model::open(dir.path());
  const auto base = target.checkpoint().tensor(changed);
  EXPECT_TRUE(at::equal(again.checkpoint().tensor(changed), base + 0.5F * delta));
  ASSERT_EQ(written.changes.size(), 1U);
  EXPECT_EQ(written.changes[0].tensor, changed);
  EXPECT_NEAR(written.norm, 0.5 * delta.norm().item<double>(), 1e-5 * written.norm);
  EXPECT_EQ(written.norm, written.changes[0].norm);
  EXPECT_LT(written.rounding_loss, 1e-7);

  // The same change by an adapter of full rank.
  update::Adapter adapter;
  adapter.low_rank["model.layers.1.mlp.down_proj"] = {
      .up = delta, .down = at::eye(delta.size(1)), .scale = 0.5};
  const auto inputs = tests::case_inputs("llama_left_padded");
  const auto before = target.forward(inputs).at("logits");
  target.attach(adapter);
  const auto expected = target.forward(inputs).at("logits");
  const auto logits = again.forward(inputs).at("logits");
  EXPECT_TRUE(at::allclose(logits, expected, 1e-4, 1e-4));
  EXPECT_FALSE(at::allclose(logits, before, 1e-2, 1e-2));
}

TEST(WriteModel, TensorsMayComeInAnyOrder) {
  for (const char* name : {"llama_left_padded", "llama_bfloat16"}) {
    const auto target = tests::open_case(name);
    std::vector<std::string> tensors;
    for (const auto& parameter : target.architecture().parameters) {
      tensors.push_back(parameter.tensor);
    }
    const Deltas delta = [&](const std::string& tensor) {
      const auto& all = target.architecture().parameters;
      const auto found = std::find_if(
          all.begin(), all.end(), [&](const auto& one) { return one.tensor == tensor; });
      return tensor.size() % 3 == 0 || found->fused()
                 ? at::Tensor()
                 : at::full(found->shape, 0.1 * static_cast<double>(tensor.size()));
    };
    const ScratchDir whole, parts;
    const auto expected = write_model(target, whole.path(), delta, 0.5);
    ModelWriter writer(target, parts.path(), 0.5, layout_of(target));
    writer.write({tensors.back(), tensors[2], "no such tensor"}, delta);
    writer.write({tensors[1], tensors[2]}, delta);
    EXPECT_THROW(Checkpoint::open(parts.path()), InputError) << name;  // nothing appears yet
    const auto written = writer.finish(delta);
    EXPECT_EQ(written.norm, expected.norm);
    EXPECT_EQ(written.rounding_loss, expected.rounding_loss);
    ASSERT_EQ(written.changes.size(), expected.changes.size());
    for (size_t i = 0; i < written.changes.size(); ++i) {
      EXPECT_EQ(written.changes[i].tensor, expected.changes[i].tensor);
    }
    ASSERT_EQ(written.files, expected.files);
    for (const auto& file : written.files) {
      EXPECT_EQ(read_bytes(parts / file), read_bytes(whole / file)) << name << " " << file;
    }
  }
}

TEST(WriteModel, FusedTensorsAreAskedForWhole) {
  const tests::OpenClipCase from;
  const auto target = model::Model::open(from.path());
  const std::string fused = "visual.transformer.resblocks.0.attn.in_proj_weight";
  const ScratchDir dir;
  int asked = 0;
  write_model(target, dir.path(), [&](const std::string& tensor) {
    asked += tensor == fused ? 1 : 0;
    return tensor == fused ? at::ones({72, 24}) : at::Tensor();
  });
  EXPECT_EQ(asked, 1);
  EXPECT_TRUE(
      at::equal(Checkpoint::open(dir.path()).tensor(fused), target.checkpoint().tensor(fused) + 1));
}

TEST(WriteModel, TheRoundingLossOfBfloat16IsTheOneDoneByHand) {
  const auto target = tests::open_case("llama_bfloat16");
  const std::string name = "model.norm.weight";
  const auto base = target.checkpoint().tensor(name).to(at::kDouble);
  at::manual_seed(2);
  const auto delta = at::randn(base.sizes()) * 0.01F;
  const ScratchDir dir;
  const auto written = write_model(target, dir.path(), [&](const std::string& tensor) {
    return tensor == name ? delta : at::Tensor();
  });
  const auto stored = (base.to(at::kFloat) + delta).to(at::kBFloat16);
  EXPECT_TRUE(at::equal(Checkpoint::open(dir.path()).tensor(name), stored));
  const auto step = delta.to(at::kDouble);
  const double lost = (step - (stored.to(at::kDouble) - base)).norm().item<double>();
  const double norm = step.norm().item<double>();
  EXPECT_GT(lost / norm, 0.05);  // a step of 0.01 on weights near 1, which are 0.0078 apart
  EXPECT_NEAR(written.changes.at(0).rounding_loss, lost / norm, 1e-12);
  EXPECT_NEAR(written.rounding_loss, lost / norm, 1e-12);
  EXPECT_NEAR(written.norm, norm, 1e-12);
}

TEST(WriteModel, AStepBelowTheResolutionIsLostWhole) {
  const auto target = tests::open_case("llama_bfloat16");
  const std::string name = "model.norm.weight";
  const auto base = target.checkpoint().tensor(name).to(at::kFloat);
  const ScratchDir dir;
  const auto written = write_model(target, dir.path(), [&](const std::string& tensor) {
    return tensor == name ? base * 1e-4F : at::Tensor();
  });
  EXPECT_DOUBLE_EQ(written.rounding_loss, 1);
  expect_same_tensors(target.checkpoint(), Checkpoint::open(dir.path()));
}

TEST(WriteModel, TiedTensorsThatAreNotStoredStayUnstored) {
  auto target = tests::open_case("llama3_rope");
  const std::string embedding = "model.embed_tokens.weight";
  const ScratchDir dir;
  write_model(target, dir.path(), [&](const std::string& tensor) {
    return tensor == embedding ? at::ones(target.checkpoint().info(embedding).shape) : at::Tensor();
  });
  const auto again = Checkpoint::open(dir.path());
  EXPECT_EQ(again.find("lm_head.weight"), nullptr);
  EXPECT_TRUE(at::equal(again.tensor(embedding), target.checkpoint().tensor(embedding) + 1));
}

// llama3_rope with a head: the same memory as the embedding, or a copy of it.
NamedTensors with_head(bool copy) {
  auto tensors = tensors_of(case_path("llama3_rope") / "model.safetensors");
  for (const auto& [name, tensor] : NamedTensors(tensors)) {
    if (name == "model.embed_tokens.weight") {
      tensors.emplace_back("lm_head.weight", copy ? tensor.clone() : tensor);
    }
  }
  return tensors;
}

TEST(WriteModel, AStoredCopyOfATiedTensorGetsTheSameValues) {
  const ScratchDir from;
  copy_config("llama3_rope", from);
  checkpoint::write_safetensors(from / "model.safetensors", with_head(true));
  const auto target = model::Model::open(from.path());
  const ScratchDir dir;
  int asked = 0;
  const auto written = write_model(target, dir.path(), [&](const std::string& tensor) {
    const bool embedding = tensor == "model.embed_tokens.weight";
    asked += embedding ? 1 : 0;
    return embedding ? at::ones(target.checkpoint().info(tensor).shape) : at::Tensor();
  });
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(written.changes.size(), 1U);
  const auto again = Checkpoint::open(dir.path());
  const auto expected = target.checkpoint().tensor("model.embed_tokens.weight") + 1;
  EXPECT_TRUE(at::equal(again.tensor("model.embed_tokens.weight"), expected));
  EXPECT_TRUE(at::equal(again.tensor("lm_head.weight"), expected));
}

TEST(WriteModel, TwoNamesOfOneMemoryAreStoredOnce) {
  const ScratchDir from;
  copy_config("llama3_rope", from);
  tests::torch_save(from / "pytorch_model.bin", with_head(false));
  const auto target = model::Model::open(from.path());
  const ScratchDir dir;
  write_model(target, dir.path(), nothing);
  const auto again = Checkpoint::open(dir.path());
  EXPECT_EQ(again.find("lm_head.weight"), nullptr);
  EXPECT_EQ(again.tensors().size() + 1, target.checkpoint().tensors().size());
}

TEST(WriteModel, AnOverflowNamesTheTensorAndLeavesNothing) {
  const ScratchDir from;
  copy_config("mistral", from);
  NamedTensors tensors;
  for (const auto& [name, tensor] : tensors_of(case_path("mistral") / "model.safetensors")) {
    tensors.emplace_back(name, tensor.to(at::kHalf));
  }
  checkpoint::write_safetensors(from / "model.safetensors", tensors);
  const auto target = model::Model::open(from.path());
  const std::string name = "model.norm.weight";
  const ScratchDir dir;
  const auto fails = [&](float value) {
    return error_of<NumericError>([&] {
      write_model(target, dir.path(), [&](const std::string& tensor) {
        return tensor == name ? at::full(target.checkpoint().info(name).shape, value)
                              : at::Tensor();
      });
    });
  };
  expect_parts(fails(7e4F), name, "too large for Half");
  expect_parts(fails(std::nanf("")), name, "not finite");
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(WriteModel, ZeroAlphaCopies) {
  const auto target = tests::open_case("mistral");
  const ScratchDir dir;
  const auto written = write_model(
      target, dir.path(),
      [&](const std::string& tensor) { return at::ones_like(target.checkpoint().tensor(tensor)); },
      0);
  expect_same_tensors(target.checkpoint(), Checkpoint::open(dir.path()));
  EXPECT_TRUE(written.changes.empty());
}

TEST(WriteModel, RefusesADirectoryWithWeightsAndADeltaOfAnotherShape) {
  const auto target = tests::open_case("mistral");
  const ScratchDir dir;
  dir.file("pytorch_model.bin", "");
  expect_parts(
      error_of([&] { write_model(target, dir.path(), nothing); }), "pytorch_model.bin", "empty");
  const ScratchDir other;
  expect_parts(
      error_of<InternalError>([&] {
        write_model(target, other.path(), [](const std::string&) { return at::ones({1}); });
      }),
      "shape [1]");
  expect_parts(error_of([&] { write_model(target, other / "absent", nothing); }), "absent");
}

TEST(WriteModel, TellsHowFarItIs) {
  const auto target = tests::open_case("mistral");
  const ScratchDir dir;
  int64_t last = -1;
  int64_t all = 0;
  write_model(target, dir.path(), nothing, 1, [&](int64_t done, int64_t of) {
    EXPECT_GE(done, last);
    last = done;
    all = of;
  });
  EXPECT_EQ(all, target.checkpoint().bytes());
  EXPECT_EQ(last, all);
}

}  // namespace
}  // namespace theseus::output
