// OpenCLIP's CLIP with a ViT image tower and a causal text tower. Both are stacks of pre-norm blocks
//
//   x += out_proj(attention(ln_1(x)));   x += c_proj(act(c_fc(ln_2(x))))
//
// image: class token and patches + positions, ln_pre, blocks, ln_post, class token times proj.
// text: tokens + positions, blocks that look back only, ln_final, the end-of-text token (the highest
// id of the row) times text_projection. Features are not normalised.

#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

constexpr double kEps = 1e-5;

class OpenClip final : public Network {
 public:
  OpenClip(Tower visual, Tower text, std::string text_prefix, Activation act)
      : visual_(std::move(visual)),
        text_(std::move(text)),
        prefix_(std::move(text_prefix)),
        act_(act) {}

  void enter(Pass& pass) const override {
    if (pass.batch.contains("pixel_values")) {
      const auto images = checked_images(pass, visual_.image);
      const auto patches = pass.patch_embedding("visual.conv1", images, visual_.patch);
      const auto cls = pass.weight("visual.class_embedding").expand({images.size(0), 1, -1});
      const auto x = at::cat({cls, patches}, 1) + pass.weight("visual.positional_embedding");
      pass.streams["visual"] = pass.layer_norm("visual.ln_pre", x, kEps);
    }
    if (pass.batch.contains("text")) {
      const auto ids = checked_ids(pass, "text", text_.vocabulary, text_.positions);
      const auto positions = pass.weight(prefix_ + "positional_embedding");
      pass.streams["text"] = pass.embedding(prefix_ + "token_embedding.weight", ids) +
                             positions.narrow(0, 0, ids.size(1));
      pass.kept["text"] = up_to(ids.argmax(-1), ids.size(1));
    }
  }

  void block(int64_t i, Pass& pass) const override {
    const bool visual = i < visual_.blocks;
    const auto& tower = visual ? visual_ : text_;
    const auto found = pass.streams.find(tower.name);
    if (found == pass.streams.end()) {
      return;
    }
    auto& x = found->second;  // [n, t, d]
    const auto name = visual ? c10::str("visual.transformer.resblocks.", i, ".")
                             : c10::str(prefix_, "transformer.resblocks.", i - visual_.blocks, ".");
    Attention attention{.scale = 1 / std::sqrt(static_cast<double>(tower.head_dim))};
    if (!visual) {
      attention.allowed = causal_mask(x.size(1), x.size(1), pass.device());
    }
    const auto qkv = pass.linear(
        name + "attn.in_proj", pass.layer_norm(name + "ln_1", x, kEps),
        name + "attn.in_proj_weight", name + "attn.in_proj_bias");
    const auto parts = qkv.chunk(3, -1);
    const auto mix = attend(
        split_heads(parts[0], tower.heads), split_heads(parts[1], tower.heads),
        split_heads(parts[2], tower.heads), attention);
    x = x + pass.linear(name + "attn.out_proj", merge_heads(mix));
    const auto up = pass.linear(name + "mlp.c_fc", pass.layer_norm(name + "ln_2", x, kEps));
    x = x + pass.linear(name + "mlp.c_proj", act_(up));
  }

  void leave(Pass& pass) const override {
    if (const auto found = pass.streams.find("visual"); found != pass.streams.end()) {
      const auto x = pass.layer_norm("visual.ln_post", found->second, kEps);
      pass.outputs["image_features"] = pass.project("visual.proj", x.select(1, 0));
    }
    if (const auto found = pass.streams.find("text"); found != pass.streams.end()) {
      const auto x = pass.layer_norm(prefix_ + "ln_final", found->second, kEps);
      const auto end = pass.batch.at("text").argmax(-1);
      const auto rows = at::arange(x.size(0), end.options());
      const auto pooled = x.index({rows, end});
      pass.outputs["text_features"] = pass.project(prefix_ + "text_projection", pooled);
    }
  }

 private:
  Tower visual_;
  Tower text_;
  std::string prefix_;
  Activation act_;
};

void declare_blocks(
    Declaration& declare, const Tower& tower, const std::string& prefix, int64_t first) {
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare.in_block(first + i);
    const BlockSpaces s(tower, i);
    const auto name = c10::str(prefix, "transformer.resblocks.", i, ".");
    declare.norm(name + "ln_1", s.attn_in, true);
    declare.fused(
        name + "attn.in_proj", name + "attn.in_proj_weight", name + "attn.in_proj_bias",
        {s.q, s.k, s.v}, s.attn_in);
    declare.linear(name + "attn.out_proj", s.attn_out, s.attn_mix, true);
    declare.norm(name + "ln_2", s.mlp_in, true);
    declare.linear(name + "mlp.c_fc", s.mlp_up, s.mlp_in, true);
    declare.linear(name + "mlp.c_proj", s.mlp_out, s.mlp_mid, true);
    declare.same_units(s.v, s.attn_mix);
    declare.same_units(s.mlp_up, s.mlp_mid);
  }
  declare.in_block(kOuter);
}

Tower read_visual(const Json& config) {
  refuse_others(
      config, {"image_size", "layers", "width", "patch_size", "head_width", "mlp_ratio",
               "patch_dropout", "final_ln_after_pool", "pool_type", "pos_embed_type"});
  refuse_unless(config, "pool_type", "\"tok\"");
  refuse_unless(config, "pos_embed_type", "\"learnable\"");
  Tower tower{
      .name = "visual",
      .blocks = size_of(config, "layers", 12),
      .width = size_of(config, "width", 768),
      .image = square_of(config, "image_size", 224),
      .patch = square_of(config, "patch_size", 16)};
  tower.head_dim = size_of(config, "head_width", 64);
  tower.heads = quotient(config, tower.width, tower.head_dim, "width by head_width");
  tower.key_value_heads = tower.heads;
  tower.mlp = scaled_size(tower.width, config, "mlp_ratio", 4.0);
  tower.positions = tokens_of(tower);
  return tower;
}

Tower read_text(const Json& config) {
  refuse_others(
      config, {"context_length", "vocab_size", "width", "heads", "layers", "mlp_ratio", "pool_type",
               "proj_type", "pad_id", "eos_id", "hf_tokenizer_name", "tokenizer_kwargs"});
  refuse_unless(config, "pool_type", "\"argmax\"");
  refuse_unless(config, "proj_type", "\"linear\"");
  Tower tower{
      .name = "text",
      .blocks = size_of(config, "layers", 12),
      .width = size_of(config, "width", 512),
      .heads = size_of(config, "heads", 8),
      .vocabulary = size_of(config, "vocab_size", 49408),
      .positions = size_of(config, "context_length", 77)};
  tower.key_value_heads = tower.heads;
  tower.head_dim = quotient(config, tower.width, tower.heads, "width by heads");
  tower.mlp = scaled_size(tower.width, config, "mlp_ratio", 4.0);
  return tower;
}

Architecture open(const Json& file, const checkpoint::Checkpoint& checkpoint) {
  const auto config = file.has("model_cfg") ? file.object("model_cfg") : file;
  refuse_others(
      config,
      {"embed_dim", "vision_cfg", "text_cfg", "quick_gelu", "custom_text", "init_logit_scale"});
  const auto embed = size_of(config, "embed_dim");
  const auto visual = read_visual(config.object("vision_cfg"));
  const auto text = read_text(config.object("text_cfg"));
  const bool quick = config.boolean("quick_gelu", false);
  const std::string prefix = config.boolean("custom_text", false) ? "text." : "";

  Declaration declare(checkpoint, {.anchor = "visual.class_embedding"});
  declare.tensor(
      "visual.conv1.weight", {visual.width, 3, visual.patch, visual.patch},
      {"visual.stream", "<channel>", "<row>", "<column>"});
  declare.tensor("visual.class_embedding", {visual.width}, {"visual.stream"});
  declare.tensor(
      "visual.positional_embedding", {visual.positions, visual.width},
      {"<position>", "visual.stream"});
  declare.norm("visual.ln_pre", {"visual.stream", visual.width}, true);
  declare_blocks(declare, visual, "visual.", 0);
  declare.norm("visual.ln_post", {"visual.final", visual.width}, true);
  declare.projection(
      "visual.proj", {"embed", embed}, {"visual.final", visual.width}, "visual.pooled");
  declare.tensor(
      prefix + "token_embedding.weight", {text.vocabulary, text.width}, {"<vocab>", "text.stream"});
  declare.tensor(
      prefix + "positional_embedding", {text.positions, text.width}, {"<position>", "text.stream"});
  declare_blocks(declare, text, prefix, visual.blocks);
  declare.norm(prefix + "ln_final", {"text.final", text.width}, true);
  declare.projection(
      prefix + "text_projection", {"embed", embed}, {"text.final", text.width}, "text.pooled");
  declare.tensor("logit_scale", {}, {});
  declare.buffers(
      {"attn_mask", "text.attn_mask", "input_resolution", "context_length", "vocab_size"});

  Architecture result;
  result.variant = "CLIP";
  result.towers = {visual, text};
  result.inputs = {"pixel_values", "text"};
  result.prefix = "text.";  // of custom_text
  result.adopt(std::move(declare));
  result.network = std::make_unique<OpenClip>(
      visual, text, prefix, activation(quick ? "quick_gelu" : "gelu", config.where("quick_gelu")));
  return result;
}

}  // namespace

const Family& openclip() {
  static const Family family = {
      .config_file = "open_clip_config.json",
      .key = "",
      .values = {},
      .weights =
          {"open_clip_model.safetensors", "open_clip_model.safetensors.index.json",
           "open_clip_pytorch_model.bin"},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
