#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/gradient/gradients.h"

namespace theseus::gradient {

// How gradients become one direction down, sign(-g). kMean: that of the batches' mean gradients, summed.
// kMajority: every example has one vote, the sign of its own gradient, and a tie gives 0. (The public
// reference votes by example, too, where its recipe gives a loss for each, as for CLIP; where it gives one
// for a whole batch, as for language models, it votes by batch. We do not.)
enum class Vote { kMean, kMajority };

// What becomes of an update's entries whose signs are not those of the direction down. kNormal: zero.
// kForce: they get that sign, and zero where the direction is 0.
enum class Mask { kNone, kNormal, kForce };

// "mean" or "majority"; "normal" or "force". Both throw InputError for another word.
Vote vote_of(const std::string& word);
Mask mask_of(const std::string& word);

// The direction down for some tensors of a model at its own weights, from any number of batches. The model
// must outlive this, and is as it was opened when this goes.
class Signs {
 public:
  // `tensors` by their own names. Throws InputError for another name.
  Signs(model::Model& model, Loss loss, const std::vector<std::string>& tensors, Vote vote);

  void add(const Labelled& batch);
  // Of everything that was added: the mean loss, how many, how many were right.
  Measured measured() const;
  // int8 on the CPU, -1, 0 or 1; only tensors that the loss reaches.
  std::map<std::string, at::Tensor> result() const;

 private:
  void vote();

  Trainable trainable_;
  Loss loss_;
  Vote vote_;
  std::map<std::string, at::Tensor> votes_;  // int32, of kMajority
  Measured sum_;
};

// `delta` with the mask on it; `signs` are of the same shape, from Signs.
at::Tensor masked(const at::Tensor& delta, const at::Tensor& signs, Mask mask);
// Of the entries of `delta` that are not zero, the share that have the sign of `signs`; 1 when all are zero.
double agreement(const at::Tensor& delta, const at::Tensor& signs);

}  // namespace theseus::gradient
