// PEFT's LoRA: y = x W^T + scale (x A^T) B^T, with A = lora_A [r, in], B = lora_B [out, r] and
// scale = alpha / r, or alpha / sqrt(r) when use_rslora. r and alpha are looked up per module:
// rank_pattern and alpha_pattern hold regular expressions that match the end of the module path.
//
// DoRA: y = x W'^T with W' = m (W + scale B A) / |W + scale B A|, norms and m = lora_magnitude_vector [out] by row.

#include "theseus/update/adapter.h"

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/json.h"
#include "theseus/checkpoint/checkpoint.h"

namespace theseus::update {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigFile = "adapter_config.json";
constexpr std::string_view kPeftPrefix = "base_model.model.";

// What may be set without changing what the adapter computes on its base model.
const std::set<std::string, std::less<>> kHarmlessConfigs = {
    "eva_config", "loftq_config", "runtime_config"};
const std::set<std::string, std::less<>> kHarmlessInitialisations = {
    "gaussian", "eva", "orthogonal"};

bool is_set(const Json& config, const std::string& key) {
  if (!config.has(key)) {
    return false;
  }
  const auto& value = config.raw().at(key);
  const bool empty = (value.is_structured() || value.is_string()) && value.empty();
  return !(empty || value == false);
}

// Names the first thing that makes this more than plain LoRA.
void refuse_variants(const Json& config) {
  const auto type = config.text("peft_type");
  require(
      type == "LORA", config.where("peft_type"), ": '", type,
      "' adapters are not supported; LORA is");
  for (const auto& key : config.keys()) {
    const bool variant = key.starts_with("use_") && key != "use_rslora" && key != "use_dora";
    const bool extension =
        key.ends_with("_config") && !kHarmlessConfigs.contains(key) && key != "megatron_config";
    require(
        !((variant || extension) && is_set(config, key)), config.where(key), ": ", config.dump(key),
        " is not supported; only plain LoRA and DoRA are");
  }
  for (const char* key :
       {"lora_bias", "layer_replication", "target_parameters", "trainable_token_indices",
        "alora_invocation_tokens", "megatron_config"}) {
    require(
        !is_set(config, key), config.where(key), ": ", config.dump(key),
        " is not supported; only plain LoRA and DoRA are");
  }
  const auto bias = config.text("bias", "none");
  require(bias == "none", config.where("bias"), ": '", bias, "' is not supported; 'none' is");
  if (config.has("init_lora_weights") && config.raw().at("init_lora_weights").is_string()) {
    const auto init = config.text("init_lora_weights");
    require(
        kHarmlessInitialisations.contains(init), config.where("init_lora_weights"), ": '", init,
        "' changes the base model's weights and is not supported");
  }
}

// The file may be hostile. Matching by backtracking takes forever for patterns like (a*)*b; the
// standard library of GNU can match in polynomial time instead. Its compiler recurses into brackets.
constexpr size_t kMaxPattern = 1000;
#ifdef __GLIBCXX__
constexpr auto kSyntax = std::regex_constants::ECMAScript | std::regex_constants::__polynomial;
#else
constexpr auto kSyntax = std::regex_constants::ECMAScript;
#endif

bool matches(const std::string& module, const std::string& pattern, const std::string& where) {
  require(
      pattern.size() <= kMaxPattern, where, ": a pattern of ", pattern.size(),
      " characters; at most ", kMaxPattern, " are read");
  try {
    return std::regex_match(module, std::regex(c10::str("(.*\\.)?(", pattern, ")$"), kSyntax));
  } catch (const std::regex_error& error) {
    throw InputError(
        c10::str(where, ": '", pattern, "' is not a regular expression: ", error.what()));
  }
}

// The keys of one of the config's objects in the order of the file, which Json does not keep.
std::vector<std::string> keys_in_order(const fs::path& file, const Json& config, const char* key) {
  constexpr int64_t kLongest = int64_t{64} << 20;
  std::vector<std::string> keys;
  if (config.has(key)) {
    config.object(key);  // says what else it is
    const auto whole = nlohmann::ordered_json::parse(read_text_file(file, kLongest));
    for (const auto& [name, value] : whole.at(key).items()) {
      keys.push_back(name);
    }
  }
  return keys;
}

// What differs by module.
struct Patterns {
  const Json& config;
  std::vector<std::string> rank, alpha;  // in the order of the file
};

// Returns the value of the first pattern, in the file's order, that matches the whole path or its end after a dot. PEFT
// chooses in the same way.
double pattern_value(
    const Json& config,
    const char* key,
    const std::vector<std::string>& patterns,
    const std::string& module,
    double fallback) {
  for (const auto& pattern : patterns) {
    const auto values = config.object(key);
    if (matches(module, pattern, values.where())) {
      return values.number(pattern);
    }
  }
  return fallback;
}

bool take_suffix(std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) {
    return false;
  }
  name.resize(name.size() - suffix.size());
  return true;
}

// Whole tensors of an adapter: modules_to_save, and the embedding and head, which PEFT saves too
// when LoRA sits on them.
bool is_saved_whole(const Adapter& adapter, const std::string& name) {
  auto modules = adapter.modules_to_save;
  modules.insert(modules.end(), {"embed_tokens", "lm_head"});
  return std::any_of(modules.begin(), modules.end(), [&](const std::string& module) {
    return ("." + name).find("." + module + ".") != std::string::npos;
  });
}

void add_tensor(Adapter& adapter, const std::string& stored, const at::Tensor& tensor) {
  require(stored.starts_with(kPeftPrefix), stored, " does not begin with ", kPeftPrefix);
  std::string name = stored.substr(kPeftPrefix.size());
  // A state dict saved by hand keeps the adapter's name in its keys.
  if (const auto at = name.find(".default."); at != std::string::npos) {
    name.erase(at, std::string_view(".default").size());
  }
  if (take_suffix(name, ".lora_A.weight")) {
    adapter.low_rank[name].down = tensor;
    return;
  }
  if (take_suffix(name, ".lora_B.weight")) {
    adapter.low_rank[name].up = tensor;
    return;
  }
  if (take_suffix(name, ".lora_magnitude_vector") ||
      take_suffix(name, ".lora_magnitude_vector.weight") ||
      take_suffix(name, ".lora_magnitude_vector.default")) {
    adapter.magnitudes[name] = tensor.to(at::kFloat).reshape({-1});
    return;
  }
  for (const std::string_view wrapper : {".modules_to_save", ".base_layer"}) {
    if (const auto at = name.find(wrapper); at != std::string::npos) {
      name.erase(at, wrapper.size());
    }
  }
  require(
      is_saved_whole(adapter, name), stored,
      " is neither lora_A, lora_B, lora_magnitude_vector nor one of modules_to_save; only plain "
      "LoRA and "
      "DoRA are supported");
  adapter.saved[name] = tensor;
}

void check_module(
    const Patterns& patterns, const Adapter& adapter, const std::string& module, LowRank& delta) {
  const auto& config = patterns.config;
  require(
      delta.up.defined() && delta.down.defined(), module, " has lora_",
      delta.up.defined() ? "B" : "A", " but not lora_", delta.up.defined() ? "A" : "B");
  require(
      delta.up.dim() == 2 && delta.down.dim() == 2 && delta.up.size(1) == delta.down.size(0),
      module, ": lora_B ", delta.up.sizes(), " and lora_A ", delta.down.sizes(),
      " do not share a rank");
  require(delta.down.size(0) > 0, module, " has rank 0");
  const double rank = pattern_value(
      config, "rank_pattern", patterns.rank, module, static_cast<double>(adapter.rank));
  require(
      rank == static_cast<double>(delta.down.size(0)), module, " has rank ", delta.down.size(0),
      "; ", config.where("r"), " and rank_pattern say ", rank);
  const double alpha =
      pattern_value(config, "alpha_pattern", patterns.alpha, module, adapter.alpha);
  delta.scale = alpha / (adapter.rank_stabilised ? std::sqrt(rank) : rank);
}

// With use_dora every module has a magnitude, and none without.
void check_magnitudes(const Json& config, const Adapter& adapter) {
  const bool dora = config.boolean("use_dora", false);
  for (const auto& [module, delta] : adapter.low_rank) {
    const auto found = adapter.magnitudes.find(module);
    require(
        (found != adapter.magnitudes.end()) == dora, config.where("use_dora"), ": ",
        dora ? "true, and " : "not true, and ", module, dora ? " has no" : " has a",
        " lora_magnitude_vector");
    require(
        !dora || found->second.size(0) == delta.up.size(0), module, ": lora_magnitude_vector has ",
        dora ? found->second.size(0) : 0, " numbers; its layer has ", delta.up.size(0), " outputs");
  }
  for (const auto& [module, magnitude] : adapter.magnitudes) {
    require(
        adapter.low_rank.contains(module), module,
        " has a lora_magnitude_vector, but no lora_A and lora_B");
  }
}

}  // namespace

at::Tensor with_magnitude(
    const at::Tensor& base, const LowRank& delta, const at::Tensor& magnitude) {
  const auto sum = base.to(at::kFloat) + delta.product().to(at::kFloat);
  const auto norms = at::linalg_vector_norm(sum, 2, at::IntArrayRef{1}, /*keepdim=*/true);
  require(
      norms.all().item<bool>(),
      "DoRA: a row of the base's weight with lora_B lora_A added to it is zero, and has no "
      "direction");
  return sum * (magnitude.unsqueeze(1) / norms);
}

at::Tensor LowRank::product() const {
  return at::mm(up, down) * scale;
}

double LowRank::norm() const {
  const auto u = up.to(at::kDouble), d = down.to(at::kDouble);
  const auto square = (at::mm(u.t(), u) * at::mm(d, d.t())).sum().item<double>();
  return std::abs(scale) * std::sqrt(std::max(square, 0.0));
}

int64_t Adapter::parameters() const {
  int64_t count = 0;
  for (const auto& [module, delta] : low_rank) {
    count += delta.up.numel() + delta.down.numel();
  }
  for (const auto& [module, magnitude] : magnitudes) {
    count += magnitude.numel();
  }
  for (const auto& [name, tensor] : saved) {
    count += tensor.numel();
  }
  return count;
}

bool is_adapter(const std::filesystem::path& directory) {
  std::error_code ignored;
  return std::filesystem::exists(directory / kConfigFile, ignored);
}

Adapter read_adapter(const std::filesystem::path& directory) {
  return with_context("reading the adapter " + directory.string(), [&] {
    const auto file = directory / kConfigFile;
    const auto config = Json::parse_file(file);
    refuse_variants(config);
    Adapter adapter{
        .directory = directory,
        .task = config.text("task_type", ""),
        .base_model = config.text("base_model_name_or_path", ""),
        .rank = config.integer("r"),
        .alpha = config.number("lora_alpha"),
        .rank_stabilised = config.boolean("use_rslora", false),
        .fan_in_fan_out = config.boolean("fan_in_fan_out", false),
        .target_modules = config.texts("target_modules"),
        .modules_to_save = config.texts("modules_to_save")};
    const auto tensors =
        checkpoint::Checkpoint::open(directory, {"adapter_model.safetensors", "adapter_model.bin"});
    adapter.bytes = tensors.bytes();
    for (const auto& info : tensors.tensors()) {
      add_tensor(adapter, info.name, tensors.tensor(info.name));
    }
    require(!adapter.low_rank.empty(), "the adapter holds no lora_A and lora_B");
    const Patterns patterns{
        .config = config,
        .rank = keys_in_order(file, config, "rank_pattern"),
        .alpha = keys_in_order(file, config, "alpha_pattern")};
    for (auto& [module, delta] : adapter.low_rank) {
      check_module(patterns, adapter, module, delta);
    }
    check_magnitudes(config, adapter);
    return adapter;
  });
}

}  // namespace theseus::update
