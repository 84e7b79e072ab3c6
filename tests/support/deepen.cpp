#include "tests/support/deepen.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/json.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/model.h"

#include "tests/support/planted_maps.h"
#include "tests/support/scratch_dir.h"

namespace theseus::tests {
namespace {

// Keys of all families' configs that say how deep a tower is.
const std::set<std::string> kDepths = {
    "num_hidden_layers", "num_layers", "num_decoder_layers", "layers", "depth"};

nlohmann::json deepened(nlohmann::json config, int64_t blocks) {
  for (auto& [key, value] : config.items()) {
    if (value.is_object()) {
      value = deepened(value, blocks);
    } else if (kDepths.contains(key) && value.is_number_integer()) {
      value = blocks;
    }
  }
  return config;
}

at::Tensor with_noise(const at::Tensor& value, uint64_t seed, const std::string& name) {
  constexpr double kSize = 0.3;
  const auto noise = at::randn(value.sizes(), generator_of(seed, name), value.options());
  return value + noise * (kSize * value.norm() / noise.norm());
}

Tensors restacked(
    const model::Model& model,
    int64_t blocks,
    const std::function<BlockParts(const model::Tower& tower, int64_t i)>& parts) {
  Tensors tensors;  // a fused one comes several times
  for (const auto& parameter : model.architecture().parameters) {
    const auto value = [&](int64_t block) {
      return model.checkpoint().tensor(
          block < 0 ? parameter.stored : model::in_block(parameter.stored, block));
    };
    if (parameter.block == model::kOuter) {
      tensors[parameter.stored] = value(-1);
      continue;
    }
    const auto [tower, first] = model.architecture().tower_of(parameter.block);
    for (int64_t i = 0; i < blocks && parameter.block == first; ++i) {
      at::Tensor sum;
      for (const auto& [block, share] : parts(*tower, i)) {
        const auto term = value(block) * share;
        sum = sum.defined() ? sum + term : term;
      }
      tensors[model::in_block(parameter.stored, i)] = sum;
    }
  }
  return tensors;
}

void write_model(
    const model::Model& model,
    const std::filesystem::path& to,
    int64_t blocks,
    const Tensors& tensors) {
  std::filesystem::create_directories(to);
  checkpoint::write_safetensors(
      to / (model.location().family == "openclip" ? "open_clip_model.safetensors"
                                                  : "model.safetensors"),
      std::vector<std::pair<std::string, at::Tensor>>(tensors.begin(), tensors.end()));
  const auto& config = model.location().config;
  write_bytes(to / config.filename(), deepened(Json::parse_file(config).raw(), blocks).dump(2));
}

}  // namespace

void restack(
    const std::filesystem::path& from,
    const std::filesystem::path& to,
    int64_t blocks,
    const std::function<BlockParts(const model::Tower& tower, int64_t i)>& parts) {
  const auto model = model::Model::open(from);
  write_model(model, to, blocks, restacked(model, blocks, parts));
}

void deepen(
    const std::filesystem::path& from,
    const std::filesystem::path& to,
    int64_t blocks,
    uint64_t seed) {
  const auto model = model::Model::open(from);
  auto tensors = restacked(model, blocks, [](const model::Tower& tower, int64_t i) {
    return BlockParts{{i % tower.blocks, 1.0}};
  });
  for (auto& [name, value] : tensors) {
    if (model.checkpoint().find(name) == nullptr) {
      value = with_noise(value, seed, name);
    }
  }
  write_model(model, to, blocks, tensors);
}

}  // namespace theseus::tests
