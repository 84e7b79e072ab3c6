// T5 v1.0, v1.1 and Flan: encoder and decoder of pre-norm blocks, no biases, no absolute positions,
//
//   x += o(attention(q(h), k(h), v(h))),  h = rms_norm(x)       scores not scaled, + bias(position)
//   x += o(attention(q(h), k(e), v(e)))   in the decoder, e the encoder's output, no position bias
//   x += wo(act(wi(h)))  or  wo(act(wi_0(h)) * wi_1(h))
//
// The bias of a relative position is a table entry [bucket, head], read in the first block of each
// stack and used by all: near distances have a bucket each, far ones share them logarithmically.
// v1.0 ties the head to the embedding and scales what it reads by 1 / sqrt(d).

#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

struct Options {
  double eps = 1e-6;
  Activation act = nullptr;
  bool gated = false;
  bool tied = true;           // the head reads the embedding's table
  bool scaled_output = true;  // 1 / sqrt(d) before the head
  int64_t buckets = 32;
  int64_t max_distance = 128;
};

class T5 final : public Network {
 public:
  T5(Tower encoder, Tower decoder, Options options)
      : encoder_(std::move(encoder)), decoder_(std::move(decoder)), options_(options) {}

  // Encoding happens once: a later pass through the same streams only decodes.
  void enter(Pass& pass) const override {
    if (pass.streams.contains("encoded")) {
      pass.streams.erase("encoder");
    } else {
      enter_encoder(pass);
    }
    if (decoder_.blocks > 0 && pass.batch.contains("decoder_input_ids")) {
      enter_decoder(pass);
    }
  }

  void block(int64_t i, Pass& pass) const override {
    if (i < encoder_.blocks) {
      if (pass.streams.contains("encoder")) {
        encoder_block(i, pass);
      }
    } else if (pass.streams.contains("decoder")) {
      decoder_block(i - encoder_.blocks, pass);
    }
  }

  void leave(Pass& pass) const override {
    if (!pass.outputs.contains("encoder_last_hidden_state")) {
      pass.outputs["encoder_last_hidden_state"] = pass.streams.at("encoded");
    }
    if (!pass.streams.contains("decoder")) {
      return;
    }
    auto x = pass.rms_norm("decoder.final_layer_norm", pass.streams.at("decoder"), options_.eps);
    if (pass.last_token_only) {
      x = x.narrow(1, x.size(1) - 1, 1);
    }
    if (options_.scaled_output) {
      x = x * (1 / std::sqrt(static_cast<double>(decoder_.width)));
    }
    pass.outputs["logits"] =
        options_.tied ? pass.linear("lm_head", x, "shared.weight", "") : pass.linear("lm_head", x);
  }

 private:
  void enter_encoder(Pass& pass) const {
    const auto ids = checked_ids(pass, "input_ids", encoder_.vocabulary, 0);
    const auto t = ids.size(1);
    pass.streams["encoder"] = pass.embedding("shared.weight", ids);
    pass.streams["encoder_bias"] = position_bias("encoder", 0, t, t, pass);
    if (const auto mask = checked_mask(pass, "attention_mask", ids.sizes()); mask.defined()) {
      pass.streams["encoder_mask"] = key_mask(mask);
      pass.kept["encoder"] = mask.to(at::kBool);
    }
  }

  void enter_decoder(Pass& pass) const {
    const auto ids = checked_ids(pass, "decoder_input_ids", decoder_.vocabulary, 0);
    require(
        ids.size(0) == pass.batch.at("input_ids").size(0), "decoder_input_ids has ", ids.size(0),
        " rows; input_ids has ", pass.batch.at("input_ids").size(0));
    const auto past = pass.cache == nullptr ? 0 : pass.cache->tokens;
    const auto t = ids.size(1);
    pass.streams["decoder"] = pass.embedding("shared.weight", ids);
    pass.streams["decoder_bias"] = position_bias("decoder", past, t, past + t, pass);
    pass.streams["decoder_mask"] = causal_mask(t, past + t, pass.device());
    if (pass.cache != nullptr) {
      pass.cache->tokens += t;
    }
  }

  void encoder_block(int64_t i, Pass& pass) const {
    auto& x = pass.streams.at("encoder");  // [n, t, d]
    const auto name = c10::str("encoder.block.", i, ".layer.");
    self_attention(name + "0.", "encoder", x, pass);
    feed_forward(name + "1.", x, pass);
    if (i + 1 == encoder_.blocks) {
      pass.streams["encoded"] = pass.rms_norm("encoder.final_layer_norm", x, options_.eps);
    }
  }

  void decoder_block(int64_t i, Pass& pass) const {
    auto& x = pass.streams.at("decoder");  // [n, t, d]
    const auto name = c10::str("decoder.block.", i, ".layer.");
    self_attention(name + "0.", "decoder", x, pass);
    cross_attention(name + "1.", x, pass);
    feed_forward(name + "2.", x, pass);
  }

  void self_attention(
      const std::string& name, const std::string& stack, at::Tensor& x, Pass& pass) const {
    const auto h = pass.rms_norm(name + "layer_norm", x, options_.eps);
    const auto module = name + "SelfAttention.";
    const auto heads = encoder_.heads;
    const auto q = split_heads(pass.linear(module + "q", h), heads);
    auto k = split_heads(pass.linear(module + "k", h), heads);
    auto v = split_heads(pass.linear(module + "v", h), heads);
    if (stack == "decoder") {
      std::tie(k, v) = pass.with_past(module, k, v);
    }
    const auto mask = pass.streams.find(stack + "_mask");
    const auto mix = attend(
        q, k, v,
        {.scale = 1,
         .allowed = mask == pass.streams.end() ? at::Tensor() : mask->second,
         .bias = pass.streams.at(stack + "_bias")});
    x = x + pass.linear(module + "o", merge_heads(mix));
  }

  void cross_attention(const std::string& name, at::Tensor& x, Pass& pass) const {
    const auto module = name + "EncDecAttention.";
    const auto h = pass.rms_norm(name + "layer_norm", x, options_.eps);
    const auto heads = decoder_.heads;
    const auto q = split_heads(pass.linear(module + "q", h), heads);
    const auto keys_and_values = [&] {
      const auto& encoded = pass.streams.at("encoded");
      return std::pair(
          split_heads(pass.linear(module + "k", encoded), heads),
          split_heads(pass.linear(module + "v", encoded), heads));
    };
    std::pair<at::Tensor, at::Tensor> kv;
    if (pass.cache == nullptr) {
      kv = keys_and_values();
    } else {
      auto& kept = pass.cache->attention[module];
      kv = kept = kept.first.defined() ? kept : keys_and_values();
    }
    const auto mask = pass.streams.find("encoder_mask");
    const auto mix = attend(
        q, kv.first, kv.second,
        {.scale = 1, .allowed = mask == pass.streams.end() ? at::Tensor() : mask->second});
    x = x + pass.linear(module + "o", merge_heads(mix));
  }

  void feed_forward(const std::string& name, at::Tensor& x, Pass& pass) const {
    const auto h = pass.rms_norm(name + "layer_norm", x, options_.eps);
    const auto module = name + "DenseReluDense.";
    at::Tensor up;
    if (options_.gated) {
      up = options_.act(pass.linear(module + "wi_0", h)) * pass.linear(module + "wi_1", h);
    } else {
      up = options_.act(pass.linear(module + "wi", h));
    }
    x = x + pass.linear(module + "wo", up);
  }

  // Queries stand at `first` .. first + tq - 1, keys at 0 .. tk - 1. [1, h, tq, tk]
  at::Tensor position_bias(
      const std::string& stack, int64_t first, int64_t tq, int64_t tk, Pass& pass) const {
    const auto options = at::TensorOptions().dtype(at::kLong).device(pass.device());
    const auto distance = at::arange(tk, options).unsqueeze(0) -
                          at::arange(first, first + tq, options).unsqueeze(1);  // key - query
    const auto table =
        pass.weight(stack + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight");
    return at::embedding(table, bucket(distance, stack == "encoder"))
        .permute({2, 0, 1})
        .unsqueeze(0);
  }

  // Both directions halve the buckets; looking back only uses all for the past.
  at::Tensor bucket(const at::Tensor& distance, bool both_ways) const {
    const auto buckets = both_ways ? options_.buckets / 2 : options_.buckets;
    const auto base = both_ways ? distance.gt(0).to(at::kLong) * buckets : at::zeros_like(distance);
    const auto far = both_ways ? distance.abs() : (-distance).clamp_min(0);
    const auto exact = buckets / 2;
    const double scale =
        std::log(static_cast<double>(options_.max_distance) / static_cast<double>(exact));
    const auto log_bucket = exact + (at::log(far.to(at::kFloat) / static_cast<double>(exact)) /
                                     scale * static_cast<double>(buckets - exact))
                                        .to(at::kLong);
    return base + at::where(far.lt(exact), far, log_bucket.clamp_max(buckets - 1));
  }

  Tower encoder_;
  Tower decoder_;
  Options options_;
};

void declare_attention(
    Declaration& declare,
    const std::string& module,
    const BlockSpaces& s,
    const Declaration::Side& keys_in) {
  declare.linear(module + "q", s.q, s.attn_in, false);
  declare.linear(module + "k", s.k, keys_in, false);
  declare.linear(module + "v", s.v, keys_in, false);
  declare.linear(module + "o", s.attn_out, s.attn_mix, false);
  declare.same_units(s.v, s.attn_mix);
}

void declare_feed_forward(
    Declaration& declare, const std::string& name, const BlockSpaces& s, bool gated) {
  declare.norm(name + "layer_norm", s.mlp_in, false);
  const auto module = name + "DenseReluDense.";
  declare.same_units(s.mlp_up, s.mlp_mid);
  if (gated) {
    const Declaration::Side gate{s.mlp_up.space + "_gate", s.mlp_up.width};
    declare.same_units(gate, s.mlp_mid);
    declare.linear(module + "wi_0", gate, s.mlp_in, false);
    declare.linear(module + "wi_1", s.mlp_up, s.mlp_in, false);
  } else {
    declare.linear(module + "wi", s.mlp_up, s.mlp_in, false);
  }
  declare.linear(module + "wo", s.mlp_out, s.mlp_mid, false);
}

// Attention spaces of the decoder's second attention: attn_in, q, ... with "cross_" before them.
BlockSpaces cross_spaces(const Tower& tower, int64_t block) {
  BlockSpaces s(tower, block);
  for (auto* side : {&s.attn_in, &s.q, &s.k, &s.v, &s.attn_mix, &s.attn_out}) {
    side->space.insert(side->space.rfind('.') + 1, "cross_");
  }
  return s;
}

void declare_stack(
    Declaration& declare, const Tower& tower, const Options& options, int64_t first) {
  const bool cross = tower.name == "decoder";
  // Every block of the stack reads the table, so it stays with the outer parameters.
  declare.tensor(
      tower.name + ".block.0.layer.0.SelfAttention.relative_attention_bias.weight",
      {options.buckets, tower.heads}, {"<bucket>", "<head>"});
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare.in_block(first + i);
    const BlockSpaces s(tower, i);
    const auto name = c10::str(tower.name, ".block.", i, ".layer.");
    declare.norm(name + "0.layer_norm", s.attn_in, false);
    declare_attention(declare, name + "0.SelfAttention.", s, s.attn_in);
    if (cross) {
      const auto c = cross_spaces(tower, i);
      declare.norm(name + "1.layer_norm", c.attn_in, false);
      declare_attention(declare, name + "1.EncDecAttention.", c, {"encoder.final", tower.width});
    }
    declare_feed_forward(declare, name + (cross ? "2." : "1."), s, options.gated);
  }
  declare.in_block(kOuter);
  declare.norm(tower.name + ".final_layer_norm", {tower.name + ".final", tower.width}, false);
}

Tower read_tower(const Json& config, const std::string& name, int64_t blocks) {
  Tower tower{
      .name = name,
      .blocks = blocks,
      .width = size_of(config, "d_model"),
      .heads = size_of(config, "num_heads"),
      .mlp = size_of(config, "d_ff"),
      .vocabulary = size_of(config, "vocab_size")};
  tower.key_value_heads = tower.heads;
  tower.head_dim = size_of(config, "d_kv");
  return tower;
}

// "relu", "gated-gelu": in T5's configs the latter means the tanh approximation.
void read_feed_forward(const Json& config, Options& options) {
  const auto words = config.text("feed_forward_proj", "relu");
  options.gated = words.starts_with("gated-");
  const auto act = options.gated ? words.substr(6) : words;
  const auto meant = words == "gated-gelu" ? "gelu_new" : act;
  options.act = activation(meant, config.where("feed_forward_proj"));
  require(
      config.text("dense_act_fn", meant) == meant &&
          config.boolean("is_gated_act", options.gated) == options.gated,
      config.where("feed_forward_proj"), ": '", words,
      "' disagrees with dense_act_fn or is_gated_act");
}

// transformers 5 says scale_decoder_outputs and leaves tie_word_embeddings true whatever the file
// holds: a head in the file is then the head. transformers 4 meant what tie_word_embeddings said.
void declare_head(Declaration& declare, const Json& config, const Tower& tower, Options& options) {
  const bool tie = config.boolean("tie_word_embeddings", true);
  const bool head = declare.has("lm_head.weight");
  options.scaled_output = config.boolean("scale_decoder_outputs", tie);
  options.tied = tie && !(head && config.has("scale_decoder_outputs"));
  if (options.tied) {
    declare.tied("lm_head.weight", "shared.weight");
    declare.tied_head("lm_head", "shared.weight", {"decoder.final", tower.width});
  } else {
    declare.linear("lm_head", {"<vocab>", tower.vocabulary}, {"decoder.final", tower.width}, false);
  }
}

Generation read_generation(const Json& config) {
  Generation generation{
      .possible = true,
      .grows = "decoder_input_ids",
      .end = config.integers("eos_token_id"),
      .pad = config.integer("pad_token_id", 0),
      .start = config.integers("decoder_start_token_id")};
  if (generation.start.empty()) {
    generation.start = {generation.pad};
  }
  return generation;
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  const auto layers = size_of(config, "num_layers");
  const bool encoder_only =
      config.texts("architectures") == std::vector<std::string>{"T5EncoderModel"};
  const auto encoder = read_tower(config, "encoder", layers);
  const auto decoder = read_tower(
      config, "decoder", encoder_only ? 0 : size_of(config, "num_decoder_layers", layers));
  Options options{
      .eps = config.number("layer_norm_epsilon", 1e-6),
      .buckets = size_of(config, "relative_attention_num_buckets", 32),
      .max_distance = size_of(config, "relative_attention_max_distance", 128)};
  require(
      options.buckets >= 4 && options.max_distance > options.buckets / 2,
      config.where("relative_attention_num_buckets"), ": ", options.buckets,
      " buckets for distances up to ", options.max_distance, " are not implemented");
  read_feed_forward(config, options);

  Declaration declare(checkpoint, {.anchor = "shared.weight"});
  declare.tensor("shared.weight", {encoder.vocabulary, encoder.width}, {"<vocab>", "stream"});
  declare_stack(declare, encoder, options, 0);
  if (!encoder_only) {
    declare_stack(declare, decoder, options, encoder.blocks);
    declare_head(declare, config, decoder, options);
    declare.tied("decoder.embed_tokens.weight", "shared.weight");
  }
  declare.tied("encoder.embed_tokens.weight", "shared.weight");
  // Early checkpoints carry a table that the original code never used.
  declare.buffers({"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"});

  Architecture result;
  result.variant = config.text("model_type");
  result.towers = {encoder, decoder};
  result.inputs = {"input_ids", "attention_mask", "decoder_input_ids"};
  result.adopt(std::move(declare));
  if (encoder_only) {
    result.towers.pop_back();
    result.inputs.pop_back();
  } else {
    result.generation = read_generation(config);
  }
  result.network = std::make_unique<T5>(encoder, decoder, options);
  return result;
}

}  // namespace

const Family& t5() {
  static const Family family = {
      .config_file = "config.json",
      .key = "model_type",
      .values = {"t5"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
