#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::gradient {

// A model some of whose numbers are leaves of autograd: passes through it keep a graph, and writing
// into a leaf changes what the next pass computes. Leaves are copies on the model's device, in float32
// or wider; the checkpoint is never written. When this goes, the model is as it was opened: it must
// outlive this, and must have no adapter attached.
class Trainable {
 public:
  explicit Trainable(model::Model& model) : model_(model) {}
  ~Trainable();
  Trainable(const Trainable&) = delete;
  Trainable& operator=(const Trainable&) = delete;

  model::Model& model() { return model_; }

  // Makes a tensor of the checkpoint, by its own name, a leaf. Throws InputError for another name.
  void train(const std::string& tensor);
  // A leaf that starts as `value`, which may be a tensor that the checkpoint lacks.
  void train(const std::string& tensor, const at::Tensor& value);
  // The two factors of a linear layer as leaves MODULE.lora_A.weight and MODULE.lora_B.weight.
  void adapt(const std::string& module, const update::LowRank& start);

  const std::map<std::string, at::Tensor>& leaves() const { return leaves_; }
  // The factors of a module that was adapted.
  update::LowRank low_rank(const std::string& module) const;

  // Leaves as the forward pass computes with them: before each pass that keeps a graph.
  void refresh();
  void forget_gradients();

 private:
  at::Tensor leaf(const std::string& name, const at::Tensor& value);
  bool same_dtype() const;

  model::Model& model_;
  std::map<std::string, at::Tensor> leaves_;
  std::map<std::string, double> scales_;  // of adapted modules
};

// The tensors, by their own names, that a pass over images or over texts can read: of a model with a
// tower for each, those of one.
std::vector<std::string> tensors_reached(const model::Architecture& architecture, bool images);

}  // namespace theseus::gradient
