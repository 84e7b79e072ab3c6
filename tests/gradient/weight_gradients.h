#pragma once

#include <map>
#include <string>
#include <vector>

#include "theseus/gradient/gradients.h"

namespace theseus::gradient {

// dL/dW of the mean loss L of one batch at the model's own weights, for `tensors` by their own names (none: all);
// only those that are reached.
inline std::map<std::string, at::Tensor> weight_gradients(
    model::Model& model,
    const Loss& loss,
    const Labelled& batch,
    const std::vector<std::string>& tensors = {}) {
  Trainable trainable(model);
  for (const auto& tensor :
       tensors.empty() ? tensors_reached(model.architecture(), batch.batch.contains("pixel_values"))
                       : tensors) {
    trainable.train(tensor);
  }
  add_gradients(trainable, loss, batch);
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, leaf] : trainable.leaves()) {
    if (leaf.grad().defined()) {
      gradients[name] = leaf.grad();
    }
  }
  return gradients;
}

}  // namespace theseus::gradient
