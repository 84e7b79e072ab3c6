#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/weights.h"

namespace theseus::model {

// Named inputs: pixel_values, input_ids, attention_mask, token_type_ids, decoder_input_ids, text.
using Batch = std::map<std::string, at::Tensor>;
// Named outputs: logits, image_features, ...
using Outputs = std::map<std::string, at::Tensor>;

// Sees what enters and leaves every linear layer, for all sequences of the batch or, in order, for
// some of them at a time. `module` is the layer's path in the library the
// model comes from; Parameter::axes of `module`.weight say which spaces these are.
class Taps {
 public:
  virtual ~Taps() = default;
  virtual void linear(
      const std::string& module, const at::Tensor& input, const at::Tensor& output) = 0;
  // The same for norms.
  virtual void norm(
      const std::string& /*module*/, const at::Tensor& /*input*/, const at::Tensor& /*output*/) {}
};

// Keys and values of earlier tokens, for generating one token at a time.
struct Cache {
  std::map<std::string, std::pair<at::Tensor, at::Tensor>> attention;  // by module path
  int64_t tokens = 0;                                                  // seen so far
};

// One forward pass on its way through the blocks: the state between them, and the layers that have
// weights. A network's blocks take their input from `streams` and put their output back.
class Pass {
 public:
  Pass(Weights& weights, Batch batch, Taps* taps = nullptr)
      : batch(std::move(batch)), weights_(weights), taps_(taps) {}

  Batch batch;  // on the device
  // State between blocks; the first axis of each is the sequences of one of the towers, or 1.
  std::map<std::string, at::Tensor> streams;
  // Tokens that are no padding, by tower, bool [n, t]; a tower that is not there has no padding.
  std::map<std::string, at::Tensor> kept;
  Outputs outputs;
  Cache* cache = nullptr;        // set: keep keys and values, and the batch is what follows them
  bool last_token_only = false;  // the head sees the last token of each sequence alone

  // A pass of its own for `count` of `all` sequences from `first` on: streams of `all` sequences
  // are narrowed, others (another tower's) are as they are.
  Pass part(int64_t first, int64_t count, int64_t all) const;

  // An input, or an undefined tensor.
  at::Tensor find_input(const std::string& name) const;

  bool has(const std::string& tensor) const { return weights_.has(tensor); }
  const at::Tensor& weight(const std::string& tensor) { return weights_[tensor]; }
  c10::Device device() const { return weights_.placement().device; }

  // x W^T + b, with module.weight, module.bias if declared, and the adapter's LoRA if any.
  at::Tensor linear(const std::string& module, const at::Tensor& x);
  // The same for weights under names of their own: W `weight` [out, in], b `bias` or empty.
  at::Tensor linear(
      const std::string& module,
      const at::Tensor& x,
      const std::string& weight,
      const std::string& bias);
  // x P for a projection stored [in, out], as CLIP does.
  at::Tensor project(const std::string& tensor, const at::Tensor& x);
  at::Tensor layer_norm(const std::string& module, const at::Tensor& x, double eps);
  at::Tensor rms_norm(const std::string& module, const at::Tensor& x, double eps);
  at::Tensor embedding(const std::string& tensor, const at::Tensor& ids);
  // Patches through the convolution `module`, as the matrix product it is. [n, patches, d]
  at::Tensor patch_embedding(const std::string& module, const at::Tensor& images, int64_t patch);

  // k and v with those of earlier tokens before them, when there is a cache.
  std::pair<at::Tensor, at::Tensor> with_past(
      const std::string& module, const at::Tensor& k, const at::Tensor& v);

 private:
  at::Tensor observed_norm(const std::string& module, const at::Tensor& x, at::Tensor y);
  at::Tensor observed(const std::string& module, const at::Tensor& x, at::Tensor y);

  Weights& weights_;
  Taps* taps_;
};

}  // namespace theseus::model
