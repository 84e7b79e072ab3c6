// Llama and its relatives: pre-norm decoder blocks with rotary positions and a gated MLP,
//
//   x += o(attention(rope(q(h)), rope(k(h)), v(h))),  h = rms_norm(x)
//   x += down(act(gate(h)) * up(h)),                  h = rms_norm(x)
//
// Grouped queries: key_value_heads divides heads. What Mistral, Qwen2 and Qwen3 do differently is
// data: biases, norms of q and k over the head width, defaults.

#include <algorithm>
#include <cmath>
#include <numbers>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

struct Variant {
  std::string_view name;
  bool qkv_bias;  // always; otherwise the config's attention_bias decides, for o too
  bool qk_norm;
  int64_t head_dim;         // when the config is silent; 0: width / heads
  int64_t key_value_heads;  // likewise; 0: heads
  int64_t positions;        // likewise
};
constexpr Variant kVariants[] = {
    {"llama", false, false, 0, 0, 2048},
    {"mistral", false, false, 0, 8, 131072},
    {"qwen2", true, false, 0, 32, 32768},
    {"qwen3", false, true, 128, 32, 32768}};

struct Options {
  std::string prefix;  // "model.", or "" in checkpoints of the bare decoder
  double eps = 1e-6;
  Activation act = nullptr;
  bool qk_norm = false;
  int64_t window = 0;  // see window_of
  enum class Head { kOwn, kTied, kNone } head = Head::kOwn;
  at::Tensor frequencies;  // [e / 2], radians per position
};

class Llama final : public Network {
 public:
  Llama(Tower tower, Options options) : tower_(std::move(tower)), options_(std::move(options)) {}

  void enter(Pass& pass) const override {
    const auto ids = checked_ids(pass, "input_ids", tower_.vocabulary, 0);
    const auto past = pass.cache == nullptr ? 0 : pass.cache->tokens;
    const auto t = ids.size(1);
    require(
        options_.window == 0 || past + t <= options_.window, past + t,
        " tokens with sliding_window ", options_.window,
        ": sliding window attention is not implemented beyond the window");
    pass.streams["decoder"] = pass.embedding(options_.prefix + "embed_tokens.weight", ids);
    const auto mask = checked_mask(pass, "attention_mask", {ids.size(0), past + t});
    if (mask.defined()) {
      pass.kept["decoder"] = mask.narrow(1, past, t).to(at::kBool);
    }
    pass.streams["mask"] = both(causal_mask(t, past + t, pass.device()), key_mask(mask));
    auto positions = pass.find_input("position_ids");  // [n or 1, t]
    if (!positions.defined()) {
      positions = at::arange(past, past + t, ids.options()).unsqueeze(0);
    }
    pass.streams["angles"] =
        (positions.to(at::kFloat).unsqueeze(-1) * options_.frequencies.to(pass.device()))
            .unsqueeze(1);
    if (pass.cache != nullptr) {
      pass.cache->tokens += t;
    }
  }

  void block(int64_t i, Pass& pass) const override {
    auto& x = pass.streams.at("decoder");  // [n, t, d]
    const auto name = c10::str(options_.prefix, "layers.", i, ".");
    auto h = pass.rms_norm(name + "input_layernorm", x, options_.eps);
    x = x + attention(name + "self_attn.", h, pass);
    h = pass.rms_norm(name + "post_attention_layernorm", x, options_.eps);
    const auto gate = options_.act(pass.linear(name + "mlp.gate_proj", h));
    x = x + pass.linear(name + "mlp.down_proj", gate * pass.linear(name + "mlp.up_proj", h));
  }

  void leave(Pass& pass) const override {
    auto x = pass.rms_norm(options_.prefix + "norm", pass.streams.at("decoder"), options_.eps);
    if (pass.last_token_only) {
      x = x.narrow(1, x.size(1) - 1, 1);
    }
    if (options_.head == Options::Head::kNone) {
      pass.outputs["last_hidden_state"] = x;
    } else if (options_.head == Options::Head::kOwn) {
      pass.outputs["logits"] = pass.linear("lm_head", x);
    } else {
      pass.outputs["logits"] =
          pass.linear("lm_head", x, options_.prefix + "embed_tokens.weight", "");
    }
  }

 private:
  at::Tensor attention(const std::string& name, const at::Tensor& h, Pass& pass) const {
    auto q = split_heads(pass.linear(name + "q_proj", h), tower_.heads);
    auto k = split_heads(pass.linear(name + "k_proj", h), tower_.key_value_heads);
    auto v = split_heads(pass.linear(name + "v_proj", h), tower_.key_value_heads);
    if (options_.qk_norm) {
      q = pass.rms_norm(name + "q_norm", q, options_.eps);
      k = pass.rms_norm(name + "k_norm", k, options_.eps);
    }
    const auto& angles = pass.streams.at("angles");
    std::tie(k, v) = pass.with_past(name, rotate(k, angles), v);
    const auto mix = attend(
        rotate(q, angles), k, v,
        {.scale = 1 / std::sqrt(static_cast<double>(tower_.head_dim)),
         .allowed = pass.streams.at("mask")});
    return pass.linear(name + "o_proj", merge_heads(mix));
  }

  Tower tower_;
  Options options_;
};

const Variant& variant_of(const Json& config) {
  const auto type = config.text("model_type");
  return *std::find_if(std::begin(kVariants), std::end(kVariants), [&](const Variant& variant) {
    return variant.name == type;
  });
}

// The llama3 rule: wavelengths longer than the original context / low_freq_factor are stretched by
// `factor`, shorter than context / high_freq_factor kept, those between blended.
at::Tensor llama3_scaled(const at::Tensor& frequencies, const Json& rope) {
  const double factor = rope.number("factor");
  const double low = rope.number("low_freq_factor");
  const double high = rope.number("high_freq_factor");
  const double context = rope.number("original_max_position_embeddings");
  require(
      factor > 0 && high > low, rope.where(),
      ": factor must be positive and high_freq_factor "
      "above low_freq_factor");
  const auto wavelength = 2 * std::numbers::pi / frequencies;
  const auto blend = (context / wavelength - low) / (high - low);
  const auto between = (1 - blend) * frequencies / factor + blend * frequencies;
  const auto stretched = at::where(wavelength > context / low, frequencies / factor, frequencies);
  const auto middle = (wavelength >= context / high).logical_and(wavelength <= context / low);
  return at::where(middle, between, stretched);
}

// transformers 5 keeps everything in rope_parameters, 4 theta and rope_scaling apart.
at::Tensor frequencies_of(const Json& config, int64_t head_dim) {
  const char* key = config.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  double theta = config.number("rope_theta", 10000.0);
  std::string type = "default";
  if (config.has(key)) {
    const auto rope = config.object(key);
    theta = rope.number("rope_theta", theta);
    type = rope.text("rope_type", rope.text("type", "default"));
    refuse_others(
        rope, {"rope_theta", "rope_type", "type", "factor", "low_freq_factor", "high_freq_factor",
               "original_max_position_embeddings", "partial_rotary_factor"});
    refuse_unless(rope, "partial_rotary_factor", "1.0");
  }
  refuse_unless(config, "partial_rotary_factor", "1.0");
  require(theta > 0, config.where("rope_theta"), ": ", theta, " is not positive");
  const auto exponent = at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);
  const auto frequencies = 1.0 / at::pow(theta, exponent);
  if (type == "default") {
    return frequencies;
  }
  const auto rope = config.object(key);
  if (type == "linear") {
    const double factor = rope.number("factor");
    require(factor > 0, rope.where("factor"), ": ", factor, " is not positive");
    return frequencies / factor;
  }
  require(
      type == "llama3", rope.where("rope_type"), ": '", type,
      "' is not implemented; known: default linear llama3");
  return llama3_scaled(frequencies, rope);
}

// How many tokens a query sees at most; 0: all. Within a window nothing differs from full attention,
// so only longer inputs are refused.
int64_t window_of(const Json& config, const Variant& variant) {
  const auto layers = config.texts("layer_types");
  for (const auto& layer : layers) {
    require(
        layer == "full_attention" || layer == "sliding_attention", config.where("layer_types"),
        ": '", layer, "' is not implemented; known: full_attention");
  }
  const bool sliding = std::find(layers.begin(), layers.end(), "sliding_attention") != layers.end();
  const bool switched_off =
      variant.name.starts_with("qwen") && !config.boolean("use_sliding_window", false);
  if (variant.name == "mistral" && !config.raw().contains("sliding_window")) {
    return 4096;  // transformers' default, which is not null's meaning
  }
  return config.has("sliding_window") && (sliding || !switched_off)
             ? size_of(config, "sliding_window")
             : 0;
}

Tower read_tower(const Json& config, const Variant& variant) {
  Tower tower{
      .name = "decoder",
      .blocks = size_of(config, "num_hidden_layers"),
      .width = size_of(config, "hidden_size"),
      .heads = size_of(config, "num_attention_heads"),
      .mlp = size_of(config, "intermediate_size"),
      .vocabulary = size_of(config, "vocab_size")};
  tower.key_value_heads = size_of(
      config, "num_key_value_heads",
      variant.key_value_heads > 0 ? variant.key_value_heads : tower.heads);
  quotient(config, tower.heads, tower.key_value_heads, "heads by num_key_value_heads");
  if (config.has("head_dim") || variant.head_dim > 0) {
    tower.head_dim = size_of(config, "head_dim", variant.head_dim);
  } else {
    tower.head_dim = quotient(config, tower.width, tower.heads, "hidden_size by heads");
  }
  require(tower.head_dim % 2 == 0, config.where("head_dim"), ": ", tower.head_dim, " is odd");
  // Rotary positions go on for ever; what the model has learnt to read does not.
  tower.positions = size_of(config, "max_position_embeddings", variant.positions);
  const auto window = window_of(config, variant);
  tower.positions = window > 0 ? std::min(window, tower.positions) : tower.positions;
  return tower;
}

void declare_block(
    Declaration& declare,
    const Tower& tower,
    int64_t i,
    const std::string& prefix,
    const Json& config) {
  const auto& variant = variant_of(config);
  const bool o_bias = !variant.qkv_bias && config.boolean("attention_bias", false);
  const bool qkv_bias = variant.qkv_bias || o_bias;
  const bool mlp_bias = config.boolean("mlp_bias", false);
  declare.in_block(i);
  BlockSpaces s(tower, i);
  s.q.rigid_heads = s.k.rigid_heads = true;  // rotary positions
  const Declaration::Side gate{c10::str("decoder.", i, ".mlp_gate"), tower.mlp};
  const auto name = c10::str(prefix, "layers.", i, ".");
  declare.norm(name + "input_layernorm", s.attn_in, false);
  declare.linear(name + "self_attn.q_proj", s.q, s.attn_in, qkv_bias);
  declare.linear(name + "self_attn.k_proj", s.k, s.attn_in, qkv_bias);
  declare.linear(name + "self_attn.v_proj", s.v, s.attn_in, qkv_bias);
  if (variant.qk_norm) {
    declare.head_norm(name + "self_attn.q_norm", tower.head_dim);
    declare.head_norm(name + "self_attn.k_norm", tower.head_dim);
  }
  declare.linear(name + "self_attn.o_proj", s.attn_out, s.attn_mix, o_bias);
  declare.norm(name + "post_attention_layernorm", s.mlp_in, false);
  declare.linear(name + "mlp.gate_proj", gate, s.mlp_in, mlp_bias);
  declare.linear(name + "mlp.up_proj", s.mlp_up, s.mlp_in, mlp_bias);
  declare.linear(name + "mlp.down_proj", s.mlp_out, s.mlp_mid, mlp_bias);
  declare.same_units(gate, s.mlp_mid);
  declare.same_units(s.mlp_up, s.mlp_mid);
  if (tower.heads == tower.key_value_heads) {
    declare.same_units(s.v, s.attn_mix);
  }
}

Options::Head declare_head(
    Declaration& declare, const Json& config, const Tower& tower, const std::string& prefix) {
  if (config.boolean("tie_word_embeddings", false)) {
    declare.tied("lm_head.weight", prefix + "embed_tokens.weight");
    declare.tied_head("lm_head", prefix + "embed_tokens.weight", {"decoder.final", tower.width});
    return Options::Head::kTied;
  }
  const auto architectures = config.texts("architectures");
  const bool bare = !architectures.empty() && architectures.front().ends_with("Model");
  if (bare && !declare.has("lm_head.weight")) {
    return Options::Head::kNone;
  }
  declare.linear("lm_head", {"<vocab>", tower.vocabulary}, {"decoder.final", tower.width}, false);
  return Options::Head::kOwn;
}

Generation read_generation(const Json& config) {
  Generation generation{
      .possible = true,
      .grows = "input_ids",
      .end = config.integers("eos_token_id"),
      .pad = 0,
      .start = {}};
  const auto fallback = generation.end.empty() ? 0 : generation.end.front();
  generation.pad = config.integer("pad_token_id", fallback);
  return generation;
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  const auto& variant = variant_of(config);
  const auto tower = read_tower(config, variant);
  // "model." belongs to the names here, so it is not taken for a wrapper.
  const std::vector<std::string> wrappers = {"", "module.", "_orig_mod."};
  const std::string anchor = "embed_tokens.weight";
  const bool prefixed = Declaration(checkpoint, {.wrappers = wrappers, .anchor = "model." + anchor})
                            .has("model." + anchor);
  const std::string prefix = prefixed ? "model." : "";

  Declaration declare(checkpoint, {.wrappers = wrappers, .anchor = prefix + anchor});
  declare.tensor(
      prefix + "embed_tokens.weight", {tower.vocabulary, tower.width},
      {"<vocab>", "decoder.stream"});
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare_block(declare, tower, i, prefix, config);
  }
  declare.in_block(kOuter);
  declare.norm(prefix + "norm", {"decoder.final", tower.width}, false);
  const auto head = declare_head(declare, config, tower, prefix);
  declare.buffers({"*rotary_emb.inv_freq"});

  Architecture result;
  result.variant = config.text("model_type");
  result.towers = {tower};
  result.inputs = {"input_ids", "attention_mask"};
  result.prefix = "model.";
  result.adopt(std::move(declare));
  if (head != Options::Head::kNone) {
    result.generation = read_generation(config);
  }
  result.network = std::make_unique<Llama>(
      tower, Options{
                 .prefix = prefix,
                 .eps = config.number("rms_norm_eps", 1e-6),
                 .act = activation(config.text("hidden_act", "silu"), config.where("hidden_act")),
                 .qk_norm = variant.qk_norm,
                 .window = window_of(config, variant),
                 .head = head,
                 .frequencies = frequencies_of(config, tower.head_dim)});
  return result;
}

}  // namespace

const Family& llama() {
  static const Family family = {
      .config_file = "config.json",
      .key = "model_type",
      .values = {"llama", "mistral", "qwen2", "qwen3"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
