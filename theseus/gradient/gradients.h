#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/gradient/loss.h"
#include "theseus/gradient/trainable.h"

namespace theseus::gradient {

// The mean loss of one batch.
struct Measured {
  double loss = 0;    // -log p, mean over what was asked for
  int64_t count = 0;  // labels or tokens
  int64_t right = 0;
};

// Adds the gradient of the batch's mean loss to grad() of every leaf that it reaches, `at_a_time`
// sequences after the other (0: all at once), which bounds the memory and changes nothing but rounding.
// Throws NumericError when the loss is not finite, InputError when nothing is asked for.
Measured add_gradients(
    Trainable& trainable, const Loss& loss, const Labelled& batch, int64_t at_a_time = 0);

// The same without gradients.
Measured measure(
    model::Model& model, const Loss& loss, const Labelled& batch, int64_t at_a_time = 0);

// What a linear layer put out, and dL/dy of the mean loss there: both of one shape, [n, t, out] or, behind
// a pooling, [n, out].
struct OutputGradient {
  at::Tensor output;
  at::Tensor gradient;
};

// Of every linear layer in a block or behind them that the loss reaches, by the module's path as Taps see
// it. No gradient of a weight is computed. All outputs of the batch are in memory at once.
std::map<std::string, OutputGradient> output_gradients(
    model::Model& model, const Loss& loss, const Labelled& batch);

// The blocks that a pass goes through, which need not be the model's own: run(i, pass) is step i.
struct Steps {
  int64_t count = 0;
  std::function<void(int64_t step, model::Pass& pass)> run;
};
Steps own_blocks(const model::Model& model);

struct StepGradients {
  // Of each step and, last, of what comes behind the blocks; by the module's path.
  std::vector<std::map<std::string, OutputGradient>> steps;
  std::map<std::string, at::Tensor> kept;  // as in Pass: tokens that are no padding, by tower
};

// The same along `steps`, of `modules` only (none: all).
StepGradients output_gradients(
    model::Model& model,
    const Loss& loss,
    const Labelled& batch,
    const Steps& steps,
    const std::set<std::string>& modules = {});

}  // namespace theseus::gradient
