// With gradient g, rate r, decay l, step t:
//   w <- w - r l w
//   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//   w <- w - r / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)

#include "theseus/train/adamw.h"

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"

namespace theseus::train {

void AdamW::step(const Tensors& leaves, double rate) {
  const at::NoGradGuard no_gradients;
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const auto first_share = 1 - std::pow(options_.beta1, t);
  const auto second_share = std::sqrt(1 - std::pow(options_.beta2, t));
  for (const auto& [name, leaf] : leaves) {
    const auto& gradient = leaf.grad();
    if (!gradient.defined()) {
      continue;
    }
    auto& [m, v] = moments_[name];
    if (!m.defined()) {
      m = at::zeros_like(leaf);
      v = at::zeros_like(leaf);
    }
    leaf.mul_(1 - rate * options_.decay);
    m.mul_(options_.beta1).add_(gradient, 1 - options_.beta1);
    v.mul_(options_.beta2).addcmul_(gradient, gradient, 1 - options_.beta2);
    const auto spread = v.sqrt().div_(second_share).add_(options_.eps);
    leaf.addcdiv_(m, spread, -rate / first_share);
  }
}

Tensors AdamW::moments() const {
  Tensors result;
  for (const auto& [name, moments] : moments_) {
    result["first/" + name] = moments.first;
    result["second/" + name] = moments.second;
  }
  return result;
}

void AdamW::restore(int64_t steps, const Tensors& moments) {
  steps_ = steps;
  moments_.clear();
  for (const auto& [name, tensor] : moments) {
    const bool first = name.starts_with("first/");
    auto& both = moments_[name.substr(name.find('/') + 1)];
    (first ? both.first : both.second) = tensor;
  }
}

double clip_gradients(const Tensors& leaves, double most) {
  const at::NoGradGuard no_gradients;
  at::Tensor square;  // one wait for the device, not one for each leaf
  for (const auto& [name, leaf] : leaves) {
    if (leaf.grad().defined()) {
      const auto own = leaf.grad().norm().to(at::kDouble).square();
      square = square.defined() ? square + own : own;
    }
  }
  const auto norm = square.defined() ? std::sqrt(square.item<double>()) : 0.0;
  require<NumericError>(
      std::isfinite(norm),
      "the gradient is not finite; a smaller --lr or a longer --warmup may help");
  if (most > 0 && norm > most) {
    for (const auto& [name, leaf] : leaves) {
      if (leaf.grad().defined()) {
        leaf.grad().mul_(most / norm);
      }
    }
  }
  return norm;
}

}  // namespace theseus::train
