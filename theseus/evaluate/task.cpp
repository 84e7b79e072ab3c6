#include "theseus/evaluate/task.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/gradient/labelled.h"

namespace theseus::evaluate {

std::unique_ptr<Task> make_task(const std::string& word) {
  auto name = word;
  std::replace(name.begin(), name.end(), '-', '_');
  return find_plugin(all_tasks(), "task", name).make();
}

std::string task_for(const model::Model& model, const data::Examples& examples) {
  const auto& architecture = model.architecture();
  const bool images = static_cast<bool>(examples.image);
  const auto takes = [&](const char* input) {
    const auto& inputs = architecture.inputs;
    return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
  };
  if (images && takes("pixel_values") && (takes("text") || takes("input_ids"))) {
    return "zero-shot";
  }
  const auto& linears = architecture.linears;
  if (std::any_of(linears.begin(), linears.end(), [](const auto& layer) {
        return std::find(layer.out.begin(), layer.out.end(), "<class>") != layer.out.end();
      })) {
    return "classify";
  }
  if (!images && architecture.generation.possible) {
    return "perplexity";
  }
  require(
      !examples.labels.empty(),
      "this model has no head and these examples no labels: nothing to measure by; say --task");
  return "probe";
}

at::Tensor labels_of(const data::Examples& examples, const Step& step) {
  return gradient::labels_of(examples, step.examples);
}

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
    const auto mask = batch.find("attention_mask");
    if (batch.contains("pixel_values")) {
      return rows.select(1, 0);
    }
    if (mask == batch.end()) {
      return rows.mean(1);
    }
    const auto kept = mask->second.to(at::kCPU, at::kFloat).unsqueeze(2);  // [n, t, 1]
    return (rows * kept).sum(1) / kept.sum(1);
  }
  throw InputError("this model gives no features: neither an embedding nor hidden states");
}

}  // namespace theseus::evaluate
