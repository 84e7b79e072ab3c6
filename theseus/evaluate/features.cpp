#include "theseus/evaluate/features.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/layers.h"

namespace theseus::evaluate {

at::Tensor features_of(const model::Outputs& outputs, const model::Batch& batch) {
  for (const char* name : {"image_features", "image_embeds", "text_features", "text_embeds"}) {
    if (const auto found = outputs.find(name); found != outputs.end()) {
      return found->second.to(at::kCPU, at::kFloat);
    }
  }
  if (const auto found = outputs.find("features"); found != outputs.end()) {
    return found->second.select(1, 0).to(at::kCPU, at::kFloat);
  }
  for (const char* name : {"last_hidden_state", "encoder_last_hidden_state"}) {
    const auto found = outputs.find(name);
    if (found == outputs.end()) {
      continue;
    }
    const auto rows = found->second.to(at::kCPU, at::kFloat);  // [n, t, d]
    if (batch.contains("pixel_values")) {
      return rows.select(1, 0);
    }
    const auto mask = batch.find("attention_mask");
    return model::mean_of_tokens(rows, mask == batch.end() ? at::Tensor() : mask->second);
  }
  throw InputError("this model gives no features: neither an embedding nor hidden states");
}

}  // namespace theseus::evaluate
