#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

namespace theseus::model {

struct GreedyOptions {
  int64_t new_tokens = 0;
  bool ignore_end = false;  // go on after the end-of-sequence token
  // Called after each token with how many of at most how many there are; may be empty.
  std::function<void(int64_t done, int64_t all)> watch = {};
};

// Throws InputError when `model` has no language head, or a setting that is not implemented.
void require_can_generate(const Model& model);

// Which of `tokens` are an end-of-sequence id. bool, like tokens
at::Tensor ended(const at::Tensor& tokens, const std::vector<int64_t>& end);

// The most likely next token, again and again, up to `new_tokens` times. Returns the whole sequences,
// int64 [n, t]: prompt and new tokens, or for an encoder-decoder the start token and new tokens. Rows
// that ended are filled with the pad token; generation stops when all have. Each token costs one
// token's work: keys and values of earlier ones are kept. Throws InputError for a model without a
// language head.
at::Tensor greedy(Model& model, const Batch& batch, const GreedyOptions& options);

}  // namespace theseus::model
