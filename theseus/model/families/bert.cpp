// BERT: words + positions + token types through a norm, then post-norm blocks
//
//   x = LayerNorm(x + dense(attention(x)));   x = LayerNorm(x + dense(act(dense(x))))
//
// The pooler is tanh(dense(first token)); the classification head reads it. Encoders of sentences have
// neither; a head that is put on one reads the mean of the tokens. Checkpoints come with "bert." before the
// encoder or without, and old ones say gamma and beta for weight and bias.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

class Bert final : public Network {
 public:
  Bert(Tower tower, std::string prefix, double eps, Activation act, int64_t types)
      : tower_(std::move(tower)), prefix_(std::move(prefix)), eps_(eps), act_(act), types_(types) {}

  void enter(Pass& pass) const override {
    const auto name = prefix_ + "embeddings.";
    const auto ids = checked_ids(pass, "input_ids", tower_.vocabulary, tower_.positions);
    const auto types = pass.batch.contains("token_type_ids")
                           ? checked_ids(pass, "token_type_ids", types_, tower_.positions)
                           : at::zeros_like(ids);
    require(
        types.sizes() == ids.sizes(), "input token_type_ids has shape ", types.sizes(),
        "; input_ids has ", ids.sizes());
    const auto x = pass.embedding(name + "word_embeddings.weight", ids) +
                   pass.embedding(name + "token_type_embeddings.weight", types) +
                   pass.weight(name + "position_embeddings.weight").narrow(0, 0, ids.size(1));
    pass.streams["encoder"] = pass.layer_norm(name + "LayerNorm", x, eps_);
    if (const auto mask = checked_mask(pass, "attention_mask", ids.sizes()); mask.defined()) {
      pass.streams["mask"] = key_mask(mask);
      pass.kept["encoder"] = mask.to(at::kBool);
    }
  }

  void block(int64_t i, Pass& pass) const override {
    auto& x = pass.streams.at("encoder");  // [n, t, d]
    const auto name = c10::str(prefix_, "encoder.layer.", i, ".");
    const auto mask = pass.streams.find("mask");
    const Attention attention{
        .scale = 1 / std::sqrt(static_cast<double>(tower_.head_dim)),
        .allowed = mask == pass.streams.end() ? at::Tensor() : mask->second};
    const auto q = split_heads(pass.linear(name + "attention.self.query", x), tower_.heads);
    const auto k = split_heads(pass.linear(name + "attention.self.key", x), tower_.heads);
    const auto v = split_heads(pass.linear(name + "attention.self.value", x), tower_.heads);
    const auto mix = merge_heads(attend(q, k, v, attention));
    x = pass.layer_norm(
        name + "attention.output.LayerNorm", pass.linear(name + "attention.output.dense", mix) + x,
        eps_);
    const auto up = pass.linear(name + "intermediate.dense", x);
    x = pass.layer_norm(
        name + "output.LayerNorm", pass.linear(name + "output.dense", act_(up)) + x, eps_);
  }

  void leave(Pass& pass) const override {
    const auto& x = pass.streams.at("encoder");
    pass.outputs["last_hidden_state"] = x;
    const bool pooler = pass.has(prefix_ + "pooler.dense.weight");
    if (pooler) {
      pass.outputs["pooler_output"] = pass.linear(prefix_ + "pooler.dense", x.select(1, 0)).tanh();
    }
    if (pass.has("classifier.weight")) {
      const auto kept = pass.kept.find("encoder");
      pass.outputs["logits"] = pass.linear(
          "classifier",
          pooler ? pass.outputs.at("pooler_output")
                 : mean_of_tokens(x, kept == pass.kept.end() ? at::Tensor() : kept->second));
    }
  }

 private:
  Tower tower_;
  std::string prefix_;
  double eps_;
  Activation act_;
  int64_t types_;
};

std::vector<std::string> aliases(const std::string& name) {
  for (const auto& [now, then] :
       {std::pair("LayerNorm.weight", "LayerNorm.gamma"),
        std::pair("LayerNorm.bias", "LayerNorm.beta")}) {
    if (name.ends_with(now)) {
      return {name.substr(0, name.size() - std::string_view(now).size()) + then};
    }
  }
  return {};
}

// What wrote the input of block `i`.
std::string norm_before(const std::string& prefix, int64_t i) {
  return i == 0 ? prefix + "embeddings.LayerNorm"
                : c10::str(prefix, "encoder.layer.", i - 1, ".output.LayerNorm");
}

// A post-norm block ends in a norm, whose output the next block reads. The two are spaces of their
// own, since blocks of models of different depth are matched one by one.
void declare_block(Declaration& declare, const Tower& tower, int64_t i, const std::string& prefix) {
  declare.in_block(i);
  BlockSpaces s(tower, i);
  s.attn_in.norm = norm_before(prefix, i);
  const auto name = c10::str(prefix, "encoder.layer.", i, ".");
  declare.linear(name + "attention.self.query", s.q, s.attn_in, true);
  declare.linear(name + "attention.self.key", s.k, s.attn_in, true);
  declare.linear(name + "attention.self.value", s.v, s.attn_in, true);
  declare.linear(name + "attention.output.dense", s.attn_out, s.attn_mix, true);
  declare.norm(name + "attention.output.LayerNorm", s.mlp_in, true);
  declare.linear(name + "intermediate.dense", s.mlp_up, s.mlp_in, true);
  declare.linear(name + "output.dense", s.mlp_out, s.mlp_mid, true);
  const auto written = c10::str("encoder.", i, ".block_out");
  declare.norm(name + "output.LayerNorm", {written, tower.width}, true);
  declare.same_units(s.v, s.attn_mix);
  declare.same_units(s.mlp_up, s.mlp_mid);
}

Tower read_tower(const Json& config) {
  refuse_unless(config, "position_embedding_type", "\"absolute\"");
  refuse_unless(config, "is_decoder", "false");
  refuse_unless(config, "add_cross_attention", "false");
  Tower tower{
      .name = "encoder",
      .blocks = size_of(config, "num_hidden_layers"),
      .width = size_of(config, "hidden_size"),
      .heads = size_of(config, "num_attention_heads"),
      .mlp = size_of(config, "intermediate_size"),
      .vocabulary = size_of(config, "vocab_size"),
      .positions = size_of(config, "max_position_embeddings")};
  tower.key_value_heads = tower.heads;
  tower.head_dim = quotient(config, tower.width, tower.heads, "hidden_size by heads");
  return tower;
}

// "classifier" means different things to different heads: only the config tells which.
void declare_head(
    Declaration& declare, const Json& config, const std::string& prefix, const Tower& tower) {
  const bool pooler = declare.has(prefix + "pooler.dense.weight");
  const Declaration::Side last{
      .space = "encoder.final", .width = tower.width, .norm = norm_before(prefix, tower.blocks)};
  const Declaration::Side before_tanh{"encoder.pooled_up", tower.width};
  const Declaration::Side pooled{"encoder.pooled", tower.width};
  if (pooler) {
    declare.linear(prefix + "pooler.dense", before_tanh, last, true);
    declare.same_units(before_tanh, pooled);
  }
  if (!declare.has("classifier.weight")) {
    return;
  }
  const auto heads = config.texts("architectures");
  require(
      heads == std::vector<std::string>{"BertForSequenceClassification"},
      config.where("architectures"), ": the checkpoint has a classifier, and ",
      config.dump("architectures"),
      " does not say that it is one of BertForSequenceClassification, the only one implemented");
  require(pooler, "the checkpoint has a classifier but no pooler, which it reads");
  declare.linear("classifier", {"<class>", label_count(config)}, pooled, true);
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  const auto tower = read_tower(config);
  const auto types = size_of(config, "type_vocab_size", 2);
  const std::string anchor = "embeddings.word_embeddings.weight";
  const bool bare = Declaration(checkpoint, {.anchor = anchor}).has(anchor);
  const std::string prefix = bare ? "" : "bert.";

  Declaration declare(checkpoint, {.anchor = prefix + anchor, .aliases = aliases});
  const auto name = prefix + "embeddings.";
  declare.tensor(
      name + "word_embeddings.weight", {tower.vocabulary, tower.width},
      {"<vocab>", "encoder.stream"});
  declare.tensor(
      name + "position_embeddings.weight", {tower.positions, tower.width},
      {"<position>", "encoder.stream"});
  declare.tensor(
      name + "token_type_embeddings.weight", {types, tower.width}, {"<type>", "encoder.stream"});
  declare.norm(name + "LayerNorm", {"encoder.embedded", tower.width}, true);
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare_block(declare, tower, i, prefix);
  }
  declare.in_block(kOuter);
  declare_head(declare, config, prefix, tower);
  declare.buffers({"*embeddings.position_ids", "*embeddings.token_type_ids"});
  declare.heads_not_run({"cls.*"});

  Architecture result;
  result.variant = config.text("model_type");
  result.towers = {tower};
  result.inputs = {"input_ids", "attention_mask", "token_type_ids"};
  result.prefix = "bert.";
  if (!declare.has("classifier.weight")) {
    result.head = "classifier";
    // For tokens a head of this name would mean something else.
    result.head_task = declare.has(prefix + "pooler.dense.weight") ? "SEQ_CLS" : kBareEncoder;
    result.head_width = tower.width;
  }
  result.adopt(std::move(declare));
  result.network = std::make_unique<Bert>(
      tower, prefix, config.number("layer_norm_eps", 1e-12),
      activation(config.text("hidden_act", "gelu"), config.where("hidden_act")), types);
  return result;
}

}  // namespace

const Family& bert() {
  static const Family family = {
      .config_file = "config.json",
      .key = "model_type",
      .values = {"bert"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
