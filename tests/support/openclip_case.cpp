#include "tests/support/openclip_case.h"

#include <utility>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/checkpoint/write.h"

#include "tests/support/cases.h"

namespace theseus::tests {
namespace {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

constexpr const char* kConfig = R"({"model_cfg": {"embed_dim": 16,
  "vision_cfg": {"image_size": 24, "layers": 2, "width": 24, "patch_size": 6, "head_width": 8,
                 "mlp_ratio": 1.6667},
  "text_cfg": {"context_length": 12, "vocab_size": 60, "width": 24, "heads": 3, "layers": 2,
               "mlp_ratio": 1.6667}}})";

void add_blocks(
    const checkpoint::Checkpoint& from,
    const std::string& tower,
    const std::string& prefix,
    NamedTensors& to) {
  for (int i = 0; i < 2; ++i) {
    const auto old = c10::str(tower, ".encoder.layers.", i, ".");
    const auto name = c10::str(prefix, "transformer.resblocks.", i, ".");
    for (const std::string kind : {"weight", "bias"}) {
      const auto attn = old + "self_attn.";
      to.emplace_back(
          name + "attn.in_proj_" + kind,
          at::cat(
              {from.tensor(attn + "q_proj." + kind), from.tensor(attn + "k_proj." + kind),
               from.tensor(attn + "v_proj." + kind)}));
      for (const auto& [now, then] :
           {std::pair("attn.out_proj.", "self_attn.out_proj."), std::pair("ln_1.", "layer_norm1."),
            std::pair("ln_2.", "layer_norm2."), std::pair("mlp.c_fc.", "mlp.fc1."),
            std::pair("mlp.c_proj.", "mlp.fc2.")}) {
        to.emplace_back(name + now + kind, from.tensor(old + then + kind));
      }
    }
  }
}

}  // namespace

OpenClipCase::OpenClipCase() {
  const auto from =
      checkpoint::Checkpoint::open(case_path("clip_legacy_end") / "model.safetensors");
  NamedTensors to;
  for (const auto& [now, then] :
       {std::pair("visual.conv1.weight", "vision_model.embeddings.patch_embedding.weight"),
        std::pair("visual.class_embedding", "vision_model.embeddings.class_embedding"),
        std::pair(
            "visual.positional_embedding", "vision_model.embeddings.position_embedding.weight"),
        std::pair("visual.ln_pre.weight", "vision_model.pre_layrnorm.weight"),
        std::pair("visual.ln_pre.bias", "vision_model.pre_layrnorm.bias"),
        std::pair("visual.ln_post.weight", "vision_model.post_layernorm.weight"),
        std::pair("visual.ln_post.bias", "vision_model.post_layernorm.bias"),
        std::pair("token_embedding.weight", "text_model.embeddings.token_embedding.weight"),
        std::pair("positional_embedding", "text_model.embeddings.position_embedding.weight"),
        std::pair("ln_final.weight", "text_model.final_layer_norm.weight"),
        std::pair("ln_final.bias", "text_model.final_layer_norm.bias"),
        std::pair("logit_scale", "logit_scale")}) {
    to.emplace_back(now, from.tensor(then));
  }
  to.emplace_back("visual.proj", from.tensor("visual_projection.weight").t());
  to.emplace_back("text_projection", from.tensor("text_projection.weight").t());
  add_blocks(from, "vision_model", "visual.", to);
  add_blocks(from, "text_model", "", to);
  checkpoint::write_safetensors(directory_ / "open_clip_model.safetensors", to);
  directory_.file("open_clip_config.json", kConfig);
}

model::Batch OpenClipCase::inputs() const {
  auto batch = case_inputs("clip_legacy_end");
  return {{"pixel_values", batch.at("pixel_values")}, {"text", batch.at("input_ids")}};
}

}  // namespace theseus::tests
