#pragma once

#include <cstdint>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::train {

using Tensors = std::map<std::string, at::Tensor>;

// AdamW: Adam with the decay of weights apart from the gradient (Loshchilov and Hutter), as PyTorch's
// torch.optim.AdamW computes it. Every leaf decays, biases and norms too.
class AdamW {
 public:
  struct Options {
    double decay = 0.1;
    double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  };
  explicit AdamW(const Options& options) : options_(options) {}

  // One step with the gradients that hang on `leaves`; a leaf without one stays as it is.
  void step(const Tensors& leaves, double rate);

  // For a training that is interrupted: steps taken, and first/NAME and second/NAME moments.
  int64_t steps() const { return steps_; }
  Tensors moments() const;
  void restore(int64_t steps, const Tensors& moments);

 private:
  struct Moments {
    at::Tensor first, second;
  };
  Options options_;
  std::map<std::string, Moments> moments_;
  int64_t steps_ = 0;
};

// Scales the gradients so that their norm, all taken together, is at most `most` (0: no limit). Returns the
// norm before. Throws NumericError when it is not finite.
double clip_gradients(const Tensors& leaves, double most);

}  // namespace theseus::train
