// With gradient g, rate r, decay l, step t:
//   w <- w - r l w
//   m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//   w <- w - r / (1 - b1^t) m / (sqrt(v) / sqrt(1 - b2^t) + eps)

#include "theseus/train/adamw.h"

#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"

namespace theseus::train {
namespace {

// A GPU takes a group in one launch for each operation: small leaves cost more to ask for than to compute.
// Groups are small enough for a cache, and so that the intermediate result of one is no second model.
constexpr int64_t kGroupBytes = int64_t{16} << 20;

std::vector<std::vector<std::string>> in_groups(const Tensors& leaves) {
  std::vector<std::vector<std::string>> result;
  int64_t bytes = kGroupBytes;
  for (const auto& [name, leaf] : leaves) {
    if (!leaf.grad().defined()) {
      continue;
    }
    const auto own = static_cast<int64_t>(leaf.nbytes());
    if (bytes + own > kGroupBytes) {
      result.emplace_back();
      bytes = 0;
    }
    result.back().push_back(name);
    bytes += own;
  }
  return result;
}

}  // namespace

void AdamW::step(const Tensors& leaves, double rate) {
  const c10::NoGradGuard no_gradients;
  ++steps_;
  const auto t = static_cast<double>(steps_);
  const auto first_share = 1 - std::pow(options_.beta1, t);
  const auto second_share = std::sqrt(1 - std::pow(options_.beta2, t));
  for (const auto& group : in_groups(leaves)) {
    std::vector<at::Tensor> w, g, m, v;
    for (const auto& name : group) {
      const auto& leaf = leaves.at(name);
      auto& moments = moments_[name];
      if (!moments.first.defined()) {
        moments = {.first = at::zeros_like(leaf), .second = at::zeros_like(leaf)};
      }
      w.push_back(leaf);
      g.push_back(leaf.grad());
      m.push_back(moments.first);
      v.push_back(moments.second);
    }
    at::_foreach_mul_(w, 1 - rate * options_.decay);
    at::_foreach_mul_(m, options_.beta1);
    at::_foreach_add_(m, g, 1 - options_.beta1);
    at::_foreach_mul_(v, options_.beta2);
    at::_foreach_addcmul_(v, g, g, 1 - options_.beta2);
    const auto spread = at::_foreach_sqrt(v);
    at::_foreach_div_(spread, second_share);
    at::_foreach_add_(spread, options_.eps);
    at::_foreach_addcdiv_(w, m, spread, -rate / first_share);
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
  const c10::NoGradGuard no_gradients;
  std::vector<at::Tensor> gradients;
  for (const auto& [name, leaf] : leaves) {
    if (leaf.grad().defined()) {
      gradients.push_back(leaf.grad());
    }
  }
  if (gradients.empty()) {
    return 0;
  }
  // One wait for the device, not one for each leaf.
  const auto norms = at::stack(at::_foreach_norm(gradients));
  const auto norm = norms.to(at::kDouble).norm().item<double>();
  require<NumericError>(
      std::isfinite(norm),
      "the gradient is not finite; a smaller --lr or a longer --warmup may help");
  if (most > 0 && norm > most) {
    at::_foreach_mul_(gradients, most / norm);
  }
  return norm;
}

}  // namespace theseus::train
