#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/gradient/labelled.h"
#include "theseus/model/model.h"

namespace theseus::gradient {

// How a model did on one batch.
struct Judged {
  at::Tensor
      sum;  // of -log p of what was asked for, a scalar; a graph hangs on it while one is kept
  int64_t count = 0;  // labels or tokens that were asked for
  int64_t right = 0;  // of them the likeliest
};

// What is to become small. Throws InputError when outputs and labels do not go together.
using Loss = std::function<Judged(const model::Outputs& outputs, const Labelled& batch)>;

// The classes of a head: outputs "logits" [n, c] and labels.
Loss class_loss();
// CLIP: p = softmax(scale image . class), images normalised, against the fixed `classes` [c, d].
Loss prompt_loss(const at::Tensor& classes, double scale);
// exp(logit_scale). Throws InputError when the model has none.
double prompt_scale(model::Model& model);
// Tokens: outputs "logits" [n, t, v] and wanted.
Loss token_loss();

// What CLIP makes of class names: norm(mean over templates of norm(text(template with the name))).
// Throws InputError when the model gives no text features.
at::Tensor class_features(
    model::Model& model,
    model::Reader& reader,
    const std::vector<std::string>& classes,
    const std::vector<std::string>& templates);  // [c, d] float32 on the CPU

// What this model learns from these examples by: prompts for images and a model of images and text (those
// of the data where `templates` is empty), classes for a model with a head, else tokens. Throws InputError
// when none will do, or a label is beyond the head.
Loss loss_for(
    model::Model& model,
    model::Reader& reader,
    const data::Examples& examples,
    const std::vector<std::string>& templates = {});

// Classes of the model's head, one that weights().replace() brought included; 0: there is none.
int64_t head_classes(model::Model& model);

}  // namespace theseus::gradient
