// Hugging Face ViT: class token and patches + positions, pre-norm blocks, a last norm; logits from
// the class token, or a tanh pooler.
//
// Names are those of transformers 5 (layers.N.attention.q_proj); files keep those of transformers 4
// (encoder.layer.N.attention.attention.query), which are aliases here.

#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

class Vit final : public Network {
 public:
  Vit(Tower tower, std::string prefix, double eps, Activation act)
      : tower_(std::move(tower)), prefix_(std::move(prefix)), eps_(eps), act_(act) {}

  void enter(Pass& pass) const override {
    const auto name = prefix_ + "embeddings.";
    const auto images = checked_images(pass, tower_.image);
    const auto patches =
        pass.patch_embedding(name + "patch_embeddings.projection", images, tower_.patch);
    const auto cls = pass.weight(name + "cls_token").expand({images.size(0), -1, -1});
    pass.streams["visual"] = at::cat({cls, patches}, 1) + pass.weight(name + "position_embeddings");
  }

  void block(int64_t i, Pass& pass) const override {
    auto& x = pass.streams.at("visual");  // [n, t, d]
    const auto name = c10::str(prefix_, "layers.", i, ".");
    const Attention attention{.scale = 1 / std::sqrt(static_cast<double>(tower_.head_dim))};
    auto h = pass.layer_norm(name + "layernorm_before", x, eps_);
    const auto q = split_heads(pass.linear(name + "attention.q_proj", h), tower_.heads);
    const auto k = split_heads(pass.linear(name + "attention.k_proj", h), tower_.heads);
    const auto v = split_heads(pass.linear(name + "attention.v_proj", h), tower_.heads);
    x = x + pass.linear(name + "attention.o_proj", merge_heads(attend(q, k, v, attention)));
    h = pass.layer_norm(name + "layernorm_after", x, eps_);
    x = x + pass.linear(name + "mlp.fc2", act_(pass.linear(name + "mlp.fc1", h)));
  }

  void leave(Pass& pass) const override {
    const auto x = pass.layer_norm(prefix_ + "layernorm", pass.streams.at("visual"), eps_);
    const auto cls = x.select(1, 0);
    pass.outputs["last_hidden_state"] = x;
    if (pass.has("classifier.weight")) {
      pass.outputs["logits"] = pass.linear("classifier", cls);
    }
    if (pass.has(prefix_ + "pooler.dense.weight")) {
      pass.outputs["pooler_output"] = pass.linear(prefix_ + "pooler.dense", cls).tanh();
    }
  }

 private:
  Tower tower_;
  std::string prefix_;
  double eps_;
  Activation act_;
};

// transformers 5 name -> transformers 4 name.
std::vector<std::string> aliases(const std::string& name) {
  static const std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"attention.q_proj.", "attention.attention.query."},
      {"attention.k_proj.", "attention.attention.key."},
      {"attention.v_proj.", "attention.attention.value."},
      {"attention.o_proj.", "attention.output.dense."},
      {"mlp.fc1.", "intermediate.dense."},
      {"mlp.fc2.", "output.dense."}};
  const auto at = name.find("layers.");
  if (at == std::string::npos) {
    return {};
  }
  auto older = name.substr(0, at) + "encoder.layer." + name.substr(at + 7);
  for (const auto& [now, then] : kRenamed) {
    if (const auto found = older.find(now); found != std::string::npos) {
      older.replace(found, now.size(), then);
      break;
    }
  }
  return {older};
}

void declare_block(
    Declaration& declare, const Tower& tower, int64_t i, const std::string& prefix, bool qkv_bias) {
  declare.in_block(i);
  const BlockSpaces s(tower, i);
  const auto name = c10::str(prefix, "layers.", i, ".");
  declare.norm(name + "layernorm_before", s.attn_in, true);
  declare.linear(name + "attention.q_proj", s.q, s.attn_in, qkv_bias);
  declare.linear(name + "attention.k_proj", s.k, s.attn_in, qkv_bias);
  declare.linear(name + "attention.v_proj", s.v, s.attn_in, qkv_bias);
  declare.linear(name + "attention.o_proj", s.attn_out, s.attn_mix, true);
  declare.norm(name + "layernorm_after", s.mlp_in, true);
  declare.linear(name + "mlp.fc1", s.mlp_up, s.mlp_in, true);
  declare.linear(name + "mlp.fc2", s.mlp_out, s.mlp_mid, true);
  declare.same_units(s.v, s.attn_mix);
  declare.same_units(s.mlp_up, s.mlp_mid);
}

Tower read_tower(const Json& config) {
  refuse_unless(config, "num_channels", "3");
  Tower tower{
      .name = "visual",
      .blocks = size_of(config, "num_hidden_layers"),
      .width = size_of(config, "hidden_size"),
      .heads = size_of(config, "num_attention_heads"),
      .mlp = size_of(config, "intermediate_size"),
      .image = square_of(config, "image_size", 224),
      .patch = square_of(config, "patch_size", 16)};
  tower.key_value_heads = tower.heads;
  tower.head_dim = quotient(config, tower.width, tower.heads, "hidden_size by heads");
  tower.positions = tokens_of(tower);
  return tower;
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  const auto tower = read_tower(config);
  const std::string anchor = "embeddings.patch_embeddings.projection.weight";
  const bool bare = Declaration(checkpoint, {.anchor = anchor}).has(anchor);
  const std::string prefix = bare ? "" : "vit.";

  Declaration declare(checkpoint, {.anchor = prefix + anchor, .aliases = aliases});
  const auto name = prefix + "embeddings.";
  declare.tensor(name + "cls_token", {1, 1, tower.width}, {"<one>", "<one>", "visual.stream"});
  declare.tensor(
      name + "position_embeddings", {1, tower.positions, tower.width},
      {"<one>", "<position>", "visual.stream"});
  declare.tensor(
      name + "patch_embeddings.projection.weight", {tower.width, 3, tower.patch, tower.patch},
      {"visual.stream", "<channel>", "<row>", "<column>"});
  declare.tensor(name + "patch_embeddings.projection.bias", {tower.width}, {"visual.stream"});
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare_block(declare, tower, i, prefix, config.boolean("qkv_bias", true));
  }
  declare.in_block(kOuter);
  declare.norm(prefix + "layernorm", {"visual.final", tower.width}, true);
  if (declare.has("classifier.weight")) {
    const auto classes = label_count(config);
    declare.linear("classifier", {"<class>", classes}, {"visual.final", tower.width}, true);
  }
  if (declare.has(prefix + "pooler.dense.weight")) {
    refuse_unless(config, "pooler_act", "\"tanh\"");
    const auto pooled = size_of(config, "pooler_output_size", tower.width);
    declare.linear(
        prefix + "pooler.dense", {"visual.pooled", pooled}, {"visual.final", tower.width}, true);
    declare.reads_pooled("visual.first");
  }

  Architecture result;
  result.variant = config.text("model_type");
  result.towers = {tower};
  result.inputs = {"pixel_values"};
  result.prefix = "vit.";
  if (!declare.has("classifier.weight")) {
    result.head = "classifier";
    result.head_width = tower.width;
  }
  result.adopt(std::move(declare));
  result.network = std::make_unique<Vit>(
      tower, prefix, config.number("layer_norm_eps", 1e-12),
      activation(config.text("hidden_act", "gelu"), config.where("hidden_act")));
  return result;
}

}  // namespace

const Family& vit() {
  static const Family family = {
      .config_file = "config.json",
      .key = "model_type",
      .values = {"vit"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
