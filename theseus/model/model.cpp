#include "theseus/model/model.h"

#include <algorithm>
#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/attach.h"
#include "theseus/model/layers.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

bool matches(std::string_view value, std::string_view pattern) {
  return pattern.ends_with('*') ? value.starts_with(pattern.substr(0, pattern.size() - 1))
                                : value == pattern;
}

std::string known_values() {
  std::string text;
  for (const auto& [name, family] : all_families()) {
    text.append("\n    ").append(name).append(": ").append(family->config_file);
    if (!family->key.empty()) {
      text.append(" with ").append(family->key);
    }
    for (const auto value : family->values) {
      text.append(" ").append(value);
    }
  }
  return text;
}

bool claims(const Family& family, const Json& config) {
  if (family.key.empty()) {
    return true;
  }
  if (!config.has(family.key)) {
    return false;
  }
  const auto value = config.text(family.key);
  return std::any_of(family.values.begin(), family.values.end(), [&](std::string_view pattern) {
    return matches(value, pattern);
  });
}

// Every config file in `directory` (or the one given) that some family reads.
std::vector<fs::path> config_files(const fs::path& directory, const fs::path& given) {
  if (!given.empty()) {
    return {given};
  }
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& [name, family] : all_families()) {
    const auto path = directory / family->config_file;
    if (std::find(found.begin(), found.end(), path) == found.end() && fs::exists(path, ignored)) {
      found.push_back(path);
    }
  }
  return found;
}

std::string word_of(const Json& config) {
  for (const char* key : {"model_type", "architecture"}) {
    if (config.has(key)) {
      return c10::str(key, " ", config.dump(key));
    }
  }
  return "neither model_type nor architecture";
}

// One row per family that claims one of the config files.
std::vector<Location> claimants(const std::vector<fs::path>& configs, const OpenOptions& options) {
  std::vector<Location> found;
  for (const auto& path : configs) {
    const auto config = Json::parse_file(path);
    const auto before = found.size();
    for (const auto& [name, family] : all_families()) {
      const bool named = options.config.empty() ? path.filename() == family->config_file
                                                : !family->key.empty() || config.has("model_cfg") ||
                                                      config.has("vision_cfg");
      if (named && claims(*family, config) && (options.family.empty() || options.family == name)) {
        found.push_back({.family = std::string(name), .config = path, .weights = {}});
      }
    }
    const bool asked_elsewhere = !options.family.empty() || configs.size() > 1;
    require(
        found.size() > before || asked_elsewhere, path.string(), ": ", word_of(config),
        " is not a known model; known:", known_values());
  }
  return found;
}

fs::path directory_of(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  require(
      fs::exists(status), path.string(), ": ",
      error ? error.message() : std::string("no such file or directory"));
  if (fs::is_directory(status)) {
    return path;
  }
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void check_readable(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  require(!error, "cannot read the directory ", directory.string(), ": ", error.message());
  require(entries != fs::directory_iterator(), directory.string(), " is an empty directory");
}

void read_generation_config(const fs::path& directory, Generation& generation) {
  const auto path = directory / "generation_config.json";
  std::error_code ignored;
  if (!generation.possible || !fs::exists(path, ignored)) {
    return;
  }
  const auto config = Json::parse_file(path);
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

bool has_config(const fs::path& path, const OpenOptions& options) {
  return !config_files(directory_of(path), options.config).empty();
}

Location locate(const fs::path& path, const OpenOptions& options) {
  const auto directory = directory_of(path);
  if (fs::is_directory(path)) {
    check_readable(directory);
  }
  if (!options.family.empty()) {
    find_plugin(all_families(), "model family", options.family);
  }
  require(
      !update::is_adapter(directory) || has_config(path, options), directory.string(),
      " is a PEFT adapter, not a model; give its base model, and this as --adapter");
  const auto configs = config_files(directory, options.config);
  require(
      !configs.empty(), directory.string(),
      " holds no config that tells the model's family; looked for:", known_values());
  auto found = claimants(configs, options);
  require(
      !found.empty(), "no config in ", directory.string(), " is one of a '", options.family,
      "' model");
  if (found.size() > 1) {
    std::string names;
    for (const auto& location : found) {
      names.append("\n    ")
          .append(location.config.filename())
          .append(": ")
          .append(location.family);
    }
    throw InputError(c10::str(
        directory.string(), " can be read as more than one model; choose with --family:", names));
  }
  found.front().weights = path;
  return found.front();
}

Model Model::open(const fs::path& path, const OpenOptions& options) {
  return with_context("opening " + path.string(), [&] {
    Model model;
    model.location_ = locate(path, options);
    const auto& family = find_plugin(all_families(), "model family", model.location_.family);
    model.checkpoint_ = std::make_shared<const checkpoint::Checkpoint>(
        checkpoint::Checkpoint::open(path, family.weights));
    model.architecture_ = family.open(Json::parse_file(model.location_.config), *model.checkpoint_);
    read_generation_config(directory_of(path), model.architecture_.generation);
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
    placed[name] = at::isFloatingType(tensor.scalar_type()) ? tensor.to(place.device, place.dtype)
                                                            : tensor.to(place.device);
  }
  require(!placed.empty(), "no inputs; a ", location_.family, " model takes:", takes);
  return {*weights_, std::move(placed), taps};
}

// On a processor a block runs for as many sequences at a time as keep its widest activation in the
// cache, or balance the weights that each part reads anew: less traffic, and less memory.
int64_t Model::sequences_at_a_time(int64_t block, const Pass& pass) const {
  constexpr int64_t kCacheBytes = 4 << 20;
  const bool whole = pass.cache != nullptr || pass.device() != c10::Device(c10::kCPU);
  const Tower* tower = architecture_.towers.data();
  for (auto left = block; left >= tower->blocks; ++tower) {
    left -= tower->blocks;
  }
  const auto stream = pass.streams.find(tower->name);
  if (whole || stream == pass.streams.end()) {
    return std::numeric_limits<int64_t>::max();
  }
  const auto element = static_cast<int64_t>(stream->second.element_size());
  const auto weights = tower->width * (4 * tower->width + 2 * tower->mlp) * element;
  const auto activation = stream->second.size(1) * tower->mlp * element;
  return std::max<int64_t>(1, std::max(kCacheBytes, weights) / activation);
}

void Model::run_block(int64_t block, Pass& pass) const {
  const auto& network = *architecture_.network;
  const auto some = sequences_at_a_time(block, pass);
  const auto all = pass.batch.begin()->second.size(0);
  if (some >= all) {
    network.block(block, pass);
    return;
  }
  std::vector<Pass> parts;
  for (int64_t first = 0; first < all; first += some) {
    parts.push_back(pass.part(first, std::min(some, all - first)));
    network.block(block, parts.back());
  }
  pass.merge(parts);
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
