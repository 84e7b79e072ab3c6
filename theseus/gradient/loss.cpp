#include "theseus/gradient/loss.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/wording.h"
#include "theseus/model/layers.h"

namespace theseus::gradient {
namespace {

// scores [n, c], wanted [n].
Judged cross_entropy(const at::Tensor& scores, const at::Tensor& wanted) {
  const auto labels = wanted.to(scores.device());
  const auto asked = labels.ne(kIgnored);
  return {
      .sum = at::cross_entropy_loss(
          scores.to(scores.scalar_type() == at::kDouble ? at::kDouble : at::kFloat), labels, {},
          at::Reduction::Sum, kIgnored),
      .count = asked.sum().item<int64_t>(),
      .right = scores.detach().argmax(1).eq(labels).logical_and(asked).sum().item<int64_t>()};
}

at::Tensor features(const model::Outputs& outputs, const char* projected, const char* normed) {
  auto found = outputs.find(projected);
  found = found == outputs.end() ? outputs.find(normed) : found;
  require(
      found != outputs.end(),
      "zero-shot needs a model of images and text, such as CLIP; this one gives no ", normed);
  return model::normalised(found->second);
}

bool takes(const model::Model& model, const char* input) {
  const auto& inputs = model.architecture().inputs;
  return std::find(inputs.begin(), inputs.end(), input) != inputs.end();
}

void require_labels_below(const data::Examples& examples, int64_t classes) {
  require(!examples.labels.empty(), "these examples have no labels to learn from");
  const auto least = *std::min_element(examples.labels.begin(), examples.labels.end());
  const auto most = *std::max_element(examples.labels.begin(), examples.labels.end());
  const auto wrong = most < classes ? least : most;
  const auto place = std::find(examples.labels.begin(), examples.labels.end(), wrong);
  require(
      least >= 0 && most < classes, "label ", wrong, " is none of the head's ", classes,
      " classes; it is that of ",
      printable(examples.names[static_cast<size_t>(place - examples.labels.begin())], 400));
}

}  // namespace

Loss class_loss() {
  return [](const model::Outputs& outputs, const Labelled& batch) {
    const auto found = outputs.find("logits");
    require(
        found != outputs.end() && found->second.dim() == 2,
        "this model has no classification head");
    require(batch.labels.defined(), "these examples have no labels to learn from");
    return cross_entropy(found->second, batch.labels);
  };
}

Loss prompt_loss(const at::Tensor& classes, double scale) {
  return [classes, scale](const model::Outputs& outputs, const Labelled& batch) {
    const auto images = features(outputs, "image_features", "image_embeds");  // [n, d]
    require(batch.labels.defined(), "these examples have no labels to learn from");
    return cross_entropy(images.matmul(classes.to(images.options()).t()) * scale, batch.labels);
  };
}

double prompt_scale(model::Model& model) {
  require(
      model.weights().has("logit_scale"), "zero-shot needs the model's logit_scale, and a ",
      model.location().family, " model has none");
  return std::exp(model.weights()["logit_scale"].item<double>());
}

Loss token_loss() {
  return [](const model::Outputs& outputs, const Labelled& batch) {
    const auto found = outputs.find("logits");
    require(
        found != outputs.end() && found->second.dim() == 3 && batch.wanted.defined(),
        "a language model and texts are needed, and this is neither or not both");
    const auto& logits = found->second;
    return cross_entropy(logits.reshape({-1, logits.size(2)}), batch.wanted.reshape({-1}));
  };
}

at::Tensor class_features(
    model::Model& model,
    model::Reader& reader,
    const std::vector<std::string>& classes,
    const std::vector<std::string>& templates) {
  constexpr size_t kPromptsAtATime = 64;
  const c10::NoGradGuard no_gradients;
  require(!templates.empty(), "these data bring no prompts; give --template 'a photo of a {c}.'");
  require(!classes.empty(), "zero-shot needs the names of the classes");
  std::vector<data::Worded> prompts;  // by class, then template
  for (const auto& name : classes) {
    for (const auto& words : templates) {
      prompts.push_back({.first = data::fill_template(words, name)});
    }
  }
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i < prompts.size(); i += kPromptsAtATime) {
    const auto end =
        prompts.begin() + static_cast<int64_t>(std::min(i + kPromptsAtATime, prompts.size()));
    const auto batch = reader.texts({prompts.begin() + static_cast<int64_t>(i), end});
    rows.push_back(
        features(model.forward(batch), "text_features", "text_embeds").to(at::kCPU, at::kFloat));
  }
  const auto count = static_cast<int64_t>(templates.size());
  const auto all = at::cat(rows);  // [c * count, d]
  return model::normalised(all.view({-1, count, all.size(1)}).mean(1));
}

int64_t head_classes(model::Model& model) {
  const auto& architecture = model.architecture();
  for (const auto& layer : architecture.linears) {
    if (std::find(layer.out.begin(), layer.out.end(), "<class>") != layer.out.end()) {
      return model.weights()[layer.weight].size(0);
    }
  }
  const auto weight = architecture.head + ".weight";
  return !architecture.head.empty() && model.weights().has(weight) ? model.weights()[weight].size(0)
                                                                   : 0;
}

Loss loss_for(
    model::Model& model,
    model::Reader& reader,
    const data::Examples& examples,
    const std::vector<std::string>& templates) {
  const bool text = takes(model, "text") || takes(model, "input_ids");
  if (examples.image && takes(model, "pixel_values") && text) {
    require_labels_below(examples, static_cast<int64_t>(examples.classes.size()));
    return prompt_loss(
        class_features(
            model, reader, examples.classes, templates.empty() ? examples.templates : templates),
        prompt_scale(model));
  }
  if (const auto classes = head_classes(model); classes > 0) {
    require_labels_below(examples, classes);
    return class_loss();
  }
  require(
      !examples.image && model.architecture().generation.possible, "a ", model.location().family,
      " model without a head has nothing to learn ", examples.image ? "images" : "texts", " by");
  return token_loss();
}

}  // namespace theseus::gradient
