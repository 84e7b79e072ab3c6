// timm's VisionTransformer with a class token and fused qkv:
//
//   x = [cls; patches] + pos_embed;   x += proj(attention(norm1(x)));   x += fc2(gelu(fc1(norm2(x))))
//   features = norm(x);   logits = head(class token of features)
//
// timm's config names an architecture and what differs from it (model_args).

#include <cmath>
#include <regex>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

constexpr double kEps = 1e-6;

class TimmVit final : public Network {
 public:
  explicit TimmVit(Tower tower) : tower_(std::move(tower)) {}

  void enter(Pass& pass) const override {
    const auto images = checked_images(pass, tower_.image);
    const auto patches = pass.patch_embedding("patch_embed.proj", images, tower_.patch);
    const auto cls = pass.weight("cls_token").expand({images.size(0), -1, -1});
    pass.streams["visual"] = at::cat({cls, patches}, 1) + pass.weight("pos_embed");
  }

  void block(int64_t i, Pass& pass) const override {
    auto& x = pass.streams.at("visual");  // [n, t, d]
    const auto name = c10::str("blocks.", i, ".");
    const Attention attention{.scale = 1 / std::sqrt(static_cast<double>(tower_.head_dim))};
    const auto qkv = pass.linear(name + "attn.qkv", pass.layer_norm(name + "norm1", x, kEps));
    const auto parts = qkv.chunk(3, -1);
    const auto mix = attend(
        split_heads(parts[0], tower_.heads), split_heads(parts[1], tower_.heads),
        split_heads(parts[2], tower_.heads), attention);
    x = x + pass.linear(name + "attn.proj", merge_heads(mix));
    const auto up = pass.linear(name + "mlp.fc1", pass.layer_norm(name + "norm2", x, kEps));
    x = x + pass.linear(name + "mlp.fc2", at::gelu(up));
  }

  void leave(Pass& pass) const override {
    const auto features = pass.layer_norm("norm", pass.streams.at("visual"), kEps);
    pass.outputs["features"] = features;
    if (pass.has("head.weight")) {
      pass.outputs["logits"] = pass.linear("head", features.select(1, 0));
    }
  }

 private:
  Tower tower_;
};

struct Size {
  std::string_view name;
  int64_t width, blocks, heads;
  double mlp_ratio;
};
constexpr Size kSizes[] = {
    {"tiny", 192, 12, 3, 4},
    {"small", 384, 12, 6, 4},
    {"base", 768, 12, 12, 4},
    {"large", 1024, 24, 16, 4},
    {"huge", 1280, 32, 16, 4},
    {"giant", 1408, 40, 16, 48.0 / 11},
    {"gigantic", 1664, 48, 16, 64.0 / 13}};

// The plain architectures: vit_base_patch16_224 and its like. Others differ in ways that their names
// do not tell (norms, activations, register tokens), so they are refused.
Tower tower_of(const std::string& architecture, const std::string& where) {
  static const std::regex plain("(vit|deit)_([a-z]+)_patch([1-9][0-9]?)_([1-9][0-9]{1,3})(\\..*)?");
  std::smatch match;
  const bool known = std::regex_match(architecture, match, plain);
  for (const auto& size : kSizes) {
    if (known && match.str(2) == size.name) {
      return {
          .name = "visual",
          .blocks = size.blocks,
          .width = size.width,
          .heads = size.heads,
          .mlp = static_cast<int64_t>(static_cast<double>(size.width) * size.mlp_ratio),
          .image = std::stoll(match[4]),
          .patch = std::stoll(match[3])};
    }
  }
  throw InputError(c10::str(
      where, ": architecture '", architecture,
      "' is not implemented; known: vit_SIZE_patchP_S and deit_SIZE_patchP_S "
      "with SIZE tiny small base large huge giant gigantic"));
}

void apply_model_args(const Json& args, Tower& tower) {
  refuse_others(args, {"img_size",       "patch_size",      "embed_dim",      "depth",
                       "num_heads",      "mlp_ratio",       "num_classes",    "qkv_bias",
                       "class_token",    "global_pool",     "in_chans",       "drop_rate",
                       "pos_drop_rate",  "patch_drop_rate", "proj_drop_rate", "attn_drop_rate",
                       "drop_path_rate", "weight_init",     "reg_tokens",     "scale_mlp_norm",
                       "pos_embed"});
  refuse_unless(args, "class_token", "true");
  refuse_unless(args, "global_pool", "\"token\"");
  refuse_unless(args, "in_chans", "3");
  refuse_unless(args, "reg_tokens", "0");
  refuse_unless(args, "pos_embed", "\"learn\"");
  tower.image = square_of(args, "img_size", tower.image);
  tower.patch = square_of(args, "patch_size", tower.patch);
  const double ratio = static_cast<double>(tower.mlp) / static_cast<double>(tower.width);
  const bool resized = args.has("embed_dim") || args.has("mlp_ratio");
  tower.width = size_of(args, "embed_dim", tower.width);
  if (resized) {
    tower.mlp = scaled_size(tower.width, args, "mlp_ratio", ratio);
  }
  tower.blocks = size_of(args, "depth", tower.blocks);
  tower.heads = size_of(args, "num_heads", tower.heads);
}

void declare_block(Declaration& declare, const Tower& tower, int64_t i, bool qkv_bias) {
  declare.in_block(i);
  const BlockSpaces s(tower, i);
  const auto name = c10::str("blocks.", i, ".");
  declare.norm(name + "norm1", s.attn_in, true);
  const auto qkv = name + "attn.qkv";
  declare.fused(qkv, qkv + ".weight", qkv_bias ? qkv + ".bias" : "", {s.q, s.k, s.v}, s.attn_in);
  declare.linear(name + "attn.proj", s.attn_out, s.attn_mix, true);
  declare.norm(name + "norm2", s.mlp_in, true);
  declare.linear(name + "mlp.fc1", s.mlp_up, s.mlp_in, true);
  declare.linear(name + "mlp.fc2", s.mlp_out, s.mlp_mid, true);
  declare.same_units(s.v, s.attn_mix);
  declare.same_units(s.mlp_up, s.mlp_mid);
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  const auto architecture = config.text("architecture");
  auto tower = tower_of(architecture, config.where("architecture"));
  refuse_unless(config, "global_pool", "\"token\"");
  int64_t classes = config.integer("num_classes", 1000);
  bool qkv_bias = true;
  if (config.has("model_args")) {
    const auto args = config.object("model_args");
    apply_model_args(args, tower);
    classes = args.integer("num_classes", classes);
    qkv_bias = args.boolean("qkv_bias", true);
  }
  require(classes >= 0, config.where("num_classes"), ": ", classes, " is negative");
  tower.key_value_heads = tower.heads;
  tower.head_dim = quotient(config, tower.width, tower.heads, "width by heads");
  tower.positions = tokens_of(tower);

  Declaration declare(checkpoint, {.anchor = "patch_embed.proj.weight"});
  declare.tensor("cls_token", {1, 1, tower.width}, {"<one>", "<one>", "visual.stream"});
  declare.tensor(
      "pos_embed", {1, tower.positions, tower.width}, {"<one>", "<position>", "visual.stream"});
  declare.tensor(
      "patch_embed.proj.weight", {tower.width, 3, tower.patch, tower.patch},
      {"visual.stream", "<channel>", "<row>", "<column>"});
  declare.tensor("patch_embed.proj.bias", {tower.width}, {"visual.stream"});
  for (int64_t i = 0; i < tower.blocks; ++i) {
    declare_block(declare, tower, i, qkv_bias);
  }
  declare.in_block(kOuter);
  declare.norm("norm", {"visual.final", tower.width}, true);
  if (classes > 0) {
    declare.linear("head", {"<class>", classes}, {"visual.final", tower.width}, true);
  }

  Architecture result;
  result.variant = architecture;
  result.towers = {tower};
  result.inputs = {"pixel_values"};
  if (classes == 0) {
    result.head = "head";
    result.head_width = tower.width;
  }
  result.adopt(std::move(declare));
  result.network = std::make_unique<TimmVit>(tower);
  return result;
}

}  // namespace

const Family& timm_vit() {
  static const Family family = {
      .config_file = "config.json",
      .key = "architecture",
      .values = {"vit_*", "deit_*"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
