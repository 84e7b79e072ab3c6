// Hugging Face CLIPModel: the same two towers as OpenCLIP's under other names, with separate q, k and
// v, and outputs normalised:
//
//   image_embeds = visual_projection(post_layernorm(class token)) / |.|
//   text_embeds  = text_projection(final_layer_norm(end-of-text token)) / |.|
//   logits_per_image = exp(logit_scale) image_embeds text_embeds^T

#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/model/layers.h"

namespace theseus::model::families {
namespace {

struct Stack {
  Tower tower;
  std::string prefix;  // "vision_model." or "text_model."
  double eps;
  Activation act;
};

// transformers reads eos_token_id 2, which old configs carry by mistake, as "the highest id".
constexpr int64_t kMistakenEnd = 2;

class Clip final : public Network {
 public:
  Clip(Stack visual, Stack text, int64_t end)
      : visual_(std::move(visual)), text_(std::move(text)), end_(end) {}

  void enter(Pass& pass) const override {
    require(
        pass.batch.contains("input_ids") ||
            (pass.batch.contains("pixel_values") && !pass.batch.contains("attention_mask")),
        "input attention_mask is given without the input_ids it masks");
    if (pass.batch.contains("pixel_values")) {
      const auto name = visual_.prefix + "embeddings.";
      const auto images = checked_images(pass, visual_.tower.image);
      const auto patches =
          pass.patch_embedding(name + "patch_embedding", images, visual_.tower.patch);
      const auto cls = pass.weight(name + "class_embedding").expand({images.size(0), 1, -1});
      const auto x = at::cat({cls, patches}, 1) + pass.weight(name + "position_embedding.weight");
      pass.streams["visual"] = pass.layer_norm(visual_.prefix + "pre_layrnorm", x, visual_.eps);
    }
    if (pass.batch.contains("input_ids")) {
      const auto name = text_.prefix + "embeddings.";
      const auto ids =
          checked_ids(pass, "input_ids", text_.tower.vocabulary, text_.tower.positions);
      const auto positions = pass.weight(name + "position_embedding.weight");
      pass.streams["text"] = pass.embedding(name + "token_embedding.weight", ids) +
                             positions.narrow(0, 0, ids.size(1));
      const auto mask = checked_mask(pass, "attention_mask", ids.sizes());
      pass.kept["text"] =
          mask.defined() ? mask.to(at::kBool) : up_to(end_positions(ids), ids.size(1));
      pass.streams["text_mask"] =
          both(causal_mask(ids.size(1), ids.size(1), pass.device()), key_mask(mask));
    }
  }

  void block(int64_t i, Pass& pass) const override {
    const bool visual = i < visual_.tower.blocks;
    const auto& stack = visual ? visual_ : text_;
    const auto found = pass.streams.find(stack.tower.name);
    if (found == pass.streams.end()) {
      return;
    }
    auto& x = found->second;  // [n, t, d]
    const auto name =
        c10::str(stack.prefix, "encoder.layers.", visual ? i : i - visual_.tower.blocks, ".");
    const auto heads = stack.tower.heads;
    const Attention attention{
        .scale = 1 / std::sqrt(static_cast<double>(stack.tower.head_dim)),
        .allowed = visual ? at::Tensor() : pass.streams.at("text_mask")};
    auto h = pass.layer_norm(name + "layer_norm1", x, stack.eps);
    const auto q = split_heads(pass.linear(name + "self_attn.q_proj", h), heads);
    const auto k = split_heads(pass.linear(name + "self_attn.k_proj", h), heads);
    const auto v = split_heads(pass.linear(name + "self_attn.v_proj", h), heads);
    x = x + pass.linear(name + "self_attn.out_proj", merge_heads(attend(q, k, v, attention)));
    h = pass.layer_norm(name + "layer_norm2", x, stack.eps);
    x = x + pass.linear(name + "mlp.fc2", stack.act(pass.linear(name + "mlp.fc1", h)));
  }

  void leave(Pass& pass) const override {
    at::Tensor image, text;
    if (const auto found = pass.streams.find("visual"); found != pass.streams.end()) {
      const auto x = pass.layer_norm(visual_.prefix + "post_layernorm", found->second, visual_.eps);
      image = normalised(pass.linear("visual_projection", x.select(1, 0)));
      pass.outputs["image_embeds"] = image;
    }
    if (const auto found = pass.streams.find("text"); found != pass.streams.end()) {
      const auto x = pass.layer_norm(text_.prefix + "final_layer_norm", found->second, text_.eps);
      const auto end = end_positions(pass.batch.at("input_ids").to(at::kLong));
      const auto rows = at::arange(x.size(0), end.options());
      text = normalised(pass.linear("text_projection", x.index({rows, end})));
      pass.outputs["text_embeds"] = text;
    }
    if (image.defined() && text.defined()) {
      const auto scale = pass.weight("logit_scale").exp();
      const auto logits = image.matmul(text.t()) * scale;
      pass.outputs["logits_per_image"] = logits;
      pass.outputs["logits_per_text"] = logits.t();
    }
  }

 private:
  at::Tensor end_positions(const at::Tensor& ids) const {
    return end_ == kMistakenEnd ? ids.argmax(-1) : ids.eq(end_).to(at::kInt).argmax(-1);
  }

  Stack visual_;
  Stack text_;
  int64_t end_;
};

void declare_blocks(Declaration& declare, const Stack& stack, int64_t first) {
  for (int64_t i = 0; i < stack.tower.blocks; ++i) {
    declare.in_block(first + i);
    const BlockSpaces s(stack.tower, i);
    const auto name = c10::str(stack.prefix, "encoder.layers.", i, ".");
    declare.norm(name + "layer_norm1", s.attn_in, true);
    declare.linear(name + "self_attn.q_proj", s.q, s.attn_in, true);
    declare.linear(name + "self_attn.k_proj", s.k, s.attn_in, true);
    declare.linear(name + "self_attn.v_proj", s.v, s.attn_in, true);
    declare.linear(name + "self_attn.out_proj", s.attn_out, s.attn_mix, true);
    declare.norm(name + "layer_norm2", s.mlp_in, true);
    declare.linear(name + "mlp.fc1", s.mlp_up, s.mlp_in, true);
    declare.linear(name + "mlp.fc2", s.mlp_out, s.mlp_mid, true);
    declare.same_units(s.v, s.attn_mix);
    declare.same_units(s.mlp_up, s.mlp_mid);
  }
  declare.in_block(kOuter);
}

// Old configs say everything twice; transformers lets the second win.
void check_said_once(const Json& config, const std::string& name) {
  if (!config.has(name + "_dict")) {
    return;
  }
  const auto first = config.object(name);
  const auto second = config.object(name + "_dict");
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size",
        "hidden_act", "layer_norm_eps", "vocab_size", "max_position_embeddings", "image_size",
        "patch_size", "num_channels", "eos_token_id"}) {
    require(
        !second.has(key) || second.dump(key) == first.dump(key), second.where(key), ": ",
        second.dump(key), ", but ", first.where(key), ": ", first.dump(key));
  }
}

Stack read_stack(const Json& config, const std::string& name, const std::string& prefix) {
  Tower tower{
      .name = name,
      .blocks = size_of(config, "num_hidden_layers", 12),
      .width = size_of(config, "hidden_size", name == "visual" ? 768 : 512),
      .heads = size_of(config, "num_attention_heads", name == "visual" ? 12 : 8)};
  tower.key_value_heads = tower.heads;
  tower.head_dim = quotient(config, tower.width, tower.heads, "hidden_size by heads");
  tower.mlp = size_of(config, "intermediate_size", name == "visual" ? 3072 : 2048);
  if (name == "visual") {
    refuse_unless(config, "num_channels", "3");
    tower.image = square_of(config, "image_size", 224);
    tower.patch = square_of(config, "patch_size", 32);
    tower.positions = tokens_of(tower);
  } else {
    tower.vocabulary = size_of(config, "vocab_size", 49408);
    tower.positions = size_of(config, "max_position_embeddings", 77);
  }
  return {
      .tower = tower,
      .prefix = prefix,
      .eps = config.number("layer_norm_eps", 1e-5),
      .act = activation(config.text("hidden_act", "quick_gelu"), config.where("hidden_act"))};
}

Architecture open(const Json& config, const checkpoint::Checkpoint& checkpoint) {
  check_said_once(config, "vision_config");
  check_said_once(config, "text_config");
  const auto visual = read_stack(config.object("vision_config"), "visual", "vision_model.");
  const auto text_config = config.object("text_config");
  const auto text = read_stack(text_config, "text", "text_model.");
  const auto embed = size_of(config, "projection_dim", 512);
  const auto& [v, t] = std::pair(visual.tower, text.tower);

  Declaration declare(checkpoint, {.anchor = "vision_model.embeddings.class_embedding"});
  declare.tensor(
      "vision_model.embeddings.patch_embedding.weight", {v.width, 3, v.patch, v.patch},
      {"visual.stream", "<channel>", "<row>", "<column>"});
  declare.tensor("vision_model.embeddings.class_embedding", {v.width}, {"visual.stream"});
  declare.tensor(
      "vision_model.embeddings.position_embedding.weight", {v.positions, v.width},
      {"<position>", "visual.stream"});
  declare.norm("vision_model.pre_layrnorm", {"visual.stream", v.width}, true);
  declare_blocks(declare, visual, 0);
  declare.norm("vision_model.post_layernorm", {"visual.final", v.width}, true);
  declare.linear("visual_projection", {"embed", embed}, {"visual.final", v.width}, false);
  declare.reads_pooled("visual.pooled");
  declare.tensor(
      "text_model.embeddings.token_embedding.weight", {t.vocabulary, t.width},
      {"<vocab>", "text.stream"});
  declare.tensor(
      "text_model.embeddings.position_embedding.weight", {t.positions, t.width},
      {"<position>", "text.stream"});
  declare_blocks(declare, text, v.blocks);
  declare.norm("text_model.final_layer_norm", {"text.final", t.width}, true);
  declare.linear("text_projection", {"embed", embed}, {"text.final", t.width}, false);
  declare.reads_pooled("text.pooled");
  declare.tensor("logit_scale", {}, {});
  declare.buffers({"*embeddings.position_ids"});

  Architecture result;
  result.variant = config.text("model_type");
  result.towers = {v, t};
  result.inputs = {"pixel_values", "input_ids", "attention_mask"};
  result.adopt(std::move(declare));
  result.network = std::make_unique<Clip>(visual, text, text_config.integer("eos_token_id", 49407));
  return result;
}

}  // namespace

const Family& clip() {
  static const Family family = {
      .config_file = "config.json",
      .key = "model_type",
      .values = {"clip"},
      .weights = {},
      .open = open};
  return family;
}

}  // namespace theseus::model::families
