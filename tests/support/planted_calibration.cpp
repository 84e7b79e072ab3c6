#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"

#include "tests/support/planted_maps.h"

namespace theseus::tests {
namespace {

constexpr int64_t kTokens = 16;
constexpr int64_t kDecoderTokens = 12;

const model::Tower& tower_of(const model::Model& model, bool (*suits)(const model::Tower&)) {
  const auto& towers = model.architecture().towers;
  const auto found = std::find_if(towers.begin(), towers.end(), suits);
  require(found != towers.end(), model.location().family, ": no tower takes these inputs");
  return *found;
}

at::Tensor images(const model::Model& model, int64_t sequences, at::Generator random) {
  const auto size = tower_of(model, [](const auto& tower) { return tower.image > 0; }).image;
  return at::randn({sequences, 3, size, size}, std::move(random), at::kFloat);
}

const model::Tower& text_tower(const model::Model& model) {
  return tower_of(model, [](const auto& tower) { return tower.vocabulary > 0; });
}

int64_t tokens_of(const model::Model& model) {
  const auto positions = text_tower(model).positions;
  return positions > 0 ? std::min(positions, kTokens) : kTokens;
}

at::Tensor ids(const model::Model& model, at::IntArrayRef shape, at::Generator random) {
  return at::randint(text_tower(model).vocabulary, shape, std::move(random), at::kLong);
}

// Half of each sequence at least is real; the first one is whole.
at::Tensor mask(const model::Model& model, int64_t sequences, at::Generator random) {
  const auto tokens = tokens_of(model);
  auto lengths =
      at::randint((tokens + 1) / 2, tokens + 1, {sequences, 1}, std::move(random), at::kLong);
  lengths[0] = tokens;
  return at::arange(tokens).unsqueeze(0).lt(lengths).to(at::kLong);
}

// As many types as the model's table has.
at::Tensor types(const model::Model& model, at::IntArrayRef shape, at::Generator random) {
  int64_t count = 1;
  for (const auto& parameter : model.architecture().parameters) {
    if (parameter.axes.size() == 2 && parameter.axes[0] == "<type>") {
      count = parameter.shape[0];
    }
  }
  return at::randint(count, shape, std::move(random), at::kLong);
}

}  // namespace

model::Batch planted_calibration(const model::Model& model, int64_t sequences, uint64_t seed) {
  model::Batch batch;
  for (const auto& name : model.architecture().inputs) {
    auto random = generator_of(seed, "input " + name);
    if (name == "pixel_values") {
      batch[name] = images(model, sequences, random);
    } else if (name == "input_ids" || name == "text") {
      batch[name] = ids(model, {sequences, tokens_of(model)}, random);
    } else if (name == "decoder_input_ids") {
      batch[name] = ids(model, {sequences, kDecoderTokens}, random);
    } else if (name == "attention_mask") {
      batch[name] = mask(model, sequences, random);
    } else if (name == "token_type_ids") {
      batch[name] = types(model, {sequences, tokens_of(model)}, random);
    } else {
      throw InputError("no random inputs for " + name);
    }
  }
  if (batch.contains("attention_mask")) {
    batch.at("input_ids").mul_(batch.at("attention_mask"));  // CLIP's last token is a real one
  }
  return batch;
}

void write_calibration(const std::filesystem::path& path, const model::Batch& batch) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& [name, tensor] : batch) {
    tensors.emplace_back("input/" + name, tensor);
  }
  checkpoint::write_safetensors(path, tensors);
}

}  // namespace theseus::tests
