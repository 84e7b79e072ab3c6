#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/evaluate/task.h"

namespace theseus::evaluate {

// What a causal model says at every place of `steps` that is asked for (its answers, else all tokens but padding): the
// logarithms of its next token's probabilities, in few random directions, which nearly keep the inner products of
// changes. The same directions for all models of one vocabulary.
struct Spoken {
  at::Tensor rows;  // [places, k] double
  at::Tensor text;  // int64 [places]: which text it is of, from 0
};
Spoken spoken(model::Model& model, const std::vector<Step>& steps);

// Throws InputError unless the steps of two models hold the same ids at the same places.
void require_same_texts(const std::vector<Step>& left, const std::vector<Step>& right);

}  // namespace theseus::evaluate
