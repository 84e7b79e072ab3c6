#include "theseus/model/model.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/machine/environment.h"
#include "theseus/model/attach.h"
#include "theseus/model/layers.h"
#include "theseus/model/quantised.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

// Settings that change which token comes next even when the most likely one is taken, and the value
// with which they do nothing.
constexpr std::pair<std::string_view, std::string_view> kNeutral[] = {
    {"repetition_penalty", "1.0"},
    {"encoder_repetition_penalty", "1.0"},
    {"no_repeat_ngram_size", "0"},
    {"encoder_no_repeat_ngram_size", "0"},
    {"min_length", "0"},
    {"min_new_tokens", "0"},
    {"num_beams", "1"},
    {"diversity_penalty", "0.0"},
    {"guidance_scale", "1.0"},
    {"bad_words_ids", "null"},
    {"suppress_tokens", "null"},
    {"begin_suppress_tokens", "null"},
    {"forced_bos_token_id", "null"},
    {"forced_eos_token_id", "null"},
    {"sequence_bias", "null"},
    {"exponential_decay_length_penalty", "null"},
    {"penalty_alpha", "null"},
    {"stop_strings", "null"},
    {"watermarking_config", "null"},
};

std::string find_refused(const Json& config) {
  for (const auto& [key, neutral] : kNeutral) {
    if (config.has(key) && !config.equals(key, neutral)) {
      return c10::str(config.where(key), ": ", config.dump(key), " is not implemented");
    }
  }
  return {};
}

// transformers takes these from generation_config.json, and from the model's config without one.
void read_generation_config(
    const Json& model_config, const fs::path& path, Generation& generation) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    generation.refused = find_refused(model_config);
    return;
  }
  const auto config = Json::parse_file(path);
  generation.refused = find_refused(config);
  if (config.has("eos_token_id")) {
    generation.end = config.integers("eos_token_id");
  }
  if (config.has("decoder_start_token_id")) {
    generation.start = config.integers("decoder_start_token_id");
  }
  if (config.has("pad_token_id")) {
    generation.pad = config.integer("pad_token_id");
  } else if (!generation.end.empty()) {
    generation.pad = generation.end.front();
  }
}

}  // namespace

Model Model::open(const fs::path& path, const OpenOptions& options) {
  return with_context("opening " + path.string(), [&] {
    machine::set_what_is_read_late();
    respect_onednn_limit();
    Model model;
    model.location_ = locate(path, options);
    const auto& family = find_plugin(all_families(), "model family", model.location_.family);
    model.checkpoint_ = std::make_shared<const checkpoint::Checkpoint>(
        checkpoint::Checkpoint::open(path, family.weights));
    refuse_quantised(model.location_.config, *model.checkpoint_);
    const auto config = Json::parse_file(model.location_.config);
    model.architecture_ = family.open(config, *model.checkpoint_);
    if (model.architecture_.generation.possible) {
      read_generation_config(
          config, model.location_.config.parent_path() / "generation_config.json",
          model.architecture_.generation);
    }
    model.weights_ = std::make_unique<Weights>(
        model.checkpoint_, model.architecture_.parameters, options.placement);
    return model;
  });
}

void Model::attach(const update::Adapter& adapter) {
  detach();
  with_context("attaching the adapter " + adapter.directory.string(), [&] {
    attach_adapter(architecture_, adapter, *weights_);
  });
}

void Model::detach() {
  weights_->detach_adapter();
}

Pass Model::begin(const Batch& batch, Taps* taps) {
  std::string takes;
  for (const auto& name : architecture_.inputs) {
    takes.append(" ").append(name);
  }
  Batch placed;
  for (const auto& [name, tensor] : batch) {
    const bool known = std::find(architecture_.inputs.begin(), architecture_.inputs.end(), name) !=
                       architecture_.inputs.end();
    require(
        known, "input ", name, " is not one that a ", location_.family,
        " model takes; it takes:", takes);
    const auto& place = weights_->placement();
    // Copied, then converted: the other way round the host would do that.
    const auto there = tensor.to(place.device, tensor.scalar_type(), /*non_blocking=*/true);
    placed[name] = at::isFloatingType(tensor.scalar_type()) ? there.to(place.dtype) : there;
  }
  require(!placed.empty(), "no inputs; a ", location_.family, " model takes:", takes);
  return {*weights_, std::move(placed), taps};
}

// On a processor a block runs for as many sequences at a time as keep its widest activation in the
// cache, or balance the weights that each group reads anew: less traffic, and less memory.
int64_t Model::sequences_at_a_time(const Tower& tower, const at::Tensor& stream) const {
  if (group_ > 0) {
    return group_;
  }
  constexpr int64_t kCacheBytes = 4 << 20;
  const auto element = static_cast<int64_t>(stream.element_size());
  const auto weights = tower.width * (4 * tower.width + 2 * tower.mlp) * element;
  const auto activation = stream.size(1) * tower.mlp * element;
  return std::max<int64_t>(1, std::max(kCacheBytes, weights) / activation);
}

void Model::run_block(int64_t block, Pass& pass) const {
  const auto& network = *architecture_.network;
  const auto& tower = *architecture_.tower_of(block).first;
  const auto stream = pass.streams.find(tower.name);
  // Where a graph is kept all of it stays in memory anyway, and groups cost time on the way back.
  const bool whole = pass.cache != nullptr || pass.device() != c10::Device(c10::kCPU) ||
                     stream == pass.streams.end() || stream->second.requires_grad();
  const auto all = whole ? 0 : stream->second.size(0);
  const auto some = whole ? 0 : sequences_at_a_time(tower, stream->second);
  if (some >= all) {
    network.block(block, pass);
    return;
  }
  std::map<std::string, std::vector<at::Tensor>> written;
  for (int64_t first = 0; first < all; first += some) {
    auto part = pass.part(first, std::min(some, all - first), all);
    const auto before = part.streams;
    network.block(block, part);
    for (const auto& [name, tensor] : part.streams) {
      const auto old = before.find(name);
      if (old == before.end() || !old->second.is_same(tensor)) {
        written[name].push_back(tensor);
      }
    }
  }
  for (const auto& [name, tensors] : written) {
    pass.streams[name] = at::cat(tensors, 0);
  }
}

void Model::run(Pass& pass) const {
  const auto& network = *architecture_.network;
  network.enter(pass);
  for (int64_t i = 0; i < architecture_.blocks(); ++i) {
    run_block(i, pass);
    if (drop_blocks_) {
      weights_->drop_block(i);
    }
    if (watch_) {
      watch_(i + 1, architecture_.blocks());
    }
  }
  network.leave(pass);
}

Outputs Model::forward(const Batch& batch, Taps* taps) {
  return with_context("running " + location_.weights.string(), [&] {
    auto pass = begin(batch, taps);
    run(pass);
    for (const auto& [name, tensor] : pass.outputs) {
      require<NumericError>(all_finite(tensor), "output ", name, " holds NaN or infinity");
    }
    return std::move(pass.outputs);
  });
}

int64_t Model::parameter_count() const {
  int64_t count = 0;
  for (const auto& parameter : architecture_.parameters) {
    int64_t elements = 1;
    for (const auto extent : parameter.shape) {
      elements *= extent;
    }
    count += elements;
  }
  return count;
}

}  // namespace theseus::model
