#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "theseus/evaluate/task.h"

namespace theseus::evaluate {

// Scores of classes from features: x W^T + b.
struct LinearProbe {
  at::Tensor weight;  // [c, d] float64
  at::Tensor bias;    // [c]
  int64_t steps = 0;  // of the search; 0: closed form

  at::Tensor scores(const at::Tensor& features) const;  // [n, c]
};

// Multinomial logistic regression on standardised features: the minimum of
//
//   |W|_F^2 / 2 + C sum_i -log softmax(x_i W^T + b)[y_i]
//
// which is unique up to a constant of b. L-BFGS from zero. features [n, d], labels int64 [n]. Throws
// NumericError when the gradient does not vanish within `most_steps`.
LinearProbe fit_logistic(
    const at::Tensor& features,
    const at::Tensor& labels,
    int64_t classes,
    double strength,
    int64_t most_steps = 2000);

// Least squares onto one-hot labels with |W|_F^2 / C as penalty, the bias free.
LinearProbe fit_ridge(
    const at::Tensor& features, const at::Tensor& labels, int64_t classes, double strength);

// Whichever `settings` ask for.
LinearProbe fit_probe(
    const at::Tensor& features,
    const at::Tensor& labels,
    int64_t classes,
    const Settings& settings);

}  // namespace theseus::evaluate
