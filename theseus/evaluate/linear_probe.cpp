#include "theseus/evaluate/linear_probe.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::evaluate {
namespace {

constexpr size_t kMemory = 10;       // pairs that L-BFGS keeps
constexpr double kVanished = 1e-6;   // gradient over that at the start
constexpr double kRounding = 1e-12;  // gradient over the largest that there can be
constexpr double kConstant = 1e-12;  // deviation of a feature over its mean
constexpr double kArmijo = 1e-4, kWolfe = 0.9;

struct Standard {
  at::Tensor mean, scale;  // [d]
};

Standard standard_of(const at::Tensor& x) {
  const auto mean = x.mean(0), scale = x.std(0, /*unbiased=*/false);
  // Of equal numbers rounding leaves a deviation, by which nothing may be divided.
  return {mean, at::where(scale > kConstant * mean.abs(), scale, at::ones_like(scale))};
}

// The probe of raw features from the one of standardised ones.
LinearProbe unstandardised(at::Tensor weight, const at::Tensor& bias, const Standard& standard) {
  weight = weight / standard.scale;
  return {.weight = weight, .bias = bias - weight.matmul(standard.mean)};
}

// Value and gradient at w [c, d + 1]; x has a column of ones.
std::pair<double, at::Tensor> loss_at(
    const at::Tensor& w, const at::Tensor& x, const at::Tensor& labels, double strength) {
  const auto log_p = x.matmul(w.t()).log_softmax(1);  // [n, c]
  const auto picked = log_p.gather(1, labels.unsqueeze(1));
  const auto decay = at::cat({w.slice(1, 0, -1), at::zeros_like(w.slice(1, -1))}, 1);
  const auto value = decay.square().sum() / 2 - strength * picked.sum();
  auto residual = log_p.exp();
  residual.scatter_add_(1, labels.unsqueeze(1), at::full({labels.size(0), 1}, -1.0, x.options()));
  return {value.item<double>(), decay + strength * residual.t().matmul(x)};
}

using History = std::deque<std::pair<at::Tensor, at::Tensor>>;  // steps and changes of the gradient

// - H g, H the inverse Hessian as the history has it.
at::Tensor direction(const at::Tensor& gradient, const History& history) {
  auto q = gradient.clone();
  std::vector<double> a;
  for (auto pair = history.rbegin(); pair != history.rend(); ++pair) {
    const auto& [s, y] = *pair;
    a.push_back((s.mul(q).sum() / s.mul(y).sum()).item<double>());
    q -= a.back() * y;
  }
  if (!history.empty()) {
    const auto& [s, y] = history.back();
    q *= s.mul(y).sum() / y.square().sum();
  }
  for (const auto& [s, y] : history) {
    const auto b = (y.mul(q).sum() / s.mul(y).sum()).item<double>();
    q += (a.back() - b) * s;
    a.pop_back();
  }
  return -q;
}

}  // namespace

at::Tensor LinearProbe::scores(const at::Tensor& features) const {
  return features.to(at::kDouble).matmul(weight.t()) + bias;
}

LinearProbe fit_logistic(
    const at::Tensor& features,
    const at::Tensor& labels,
    int64_t classes,
    double strength,
    int64_t most_steps) {
  const auto raw = features.to(at::kDouble);
  const auto standard = standard_of(raw);
  const auto x = at::cat(
      {(raw - standard.mean) / standard.scale, at::ones({raw.size(0), 1}, raw.options())}, 1);
  auto w = at::zeros({classes, x.size(1)}, x.options());
  auto [value, gradient] = loss_at(w, x, labels, strength);
  // Where the features tell nothing, the start is the minimum and its gradient is rounding: |g| is at most
  // strength |residual| |x|, and a residual is at most sqrt(2) in each row.
  const auto largest =
      strength * std::sqrt(2.0 * static_cast<double>(x.size(0))) * x.norm().item<double>();
  const auto limit = std::max(kVanished * gradient.norm().item<double>(), kRounding * largest);
  History history;
  int64_t steps = 0;
  for (; gradient.norm().item<double>() > limit; ++steps) {
    require<NumericError>(
        steps < most_steps, "logistic regression did not converge in ", most_steps, " steps");
    const auto d = direction(gradient, history);
    const auto slope = gradient.mul(d).sum().item<double>();
    // Bisection for a step that descends enough and leaves little slope.
    double low = 0, high = INFINITY;
    double step = history.empty() ? 1 / gradient.norm().item<double>() : 1;
    auto next = loss_at(w + step * d, x, labels, strength);
    for (int tries = 0; tries < 40; ++tries) {
      if (next.first > value + kArmijo * step * slope) {
        high = step;
      } else if (next.second.mul(d).sum().item<double>() < kWolfe * slope) {
        low = step;
      } else {
        break;
      }
      step = std::isinf(high) ? 2 * low : (low + high) / 2;
      next = loss_at(w + step * d, x, labels, strength);
    }
    history.emplace_back(step * d, next.second - gradient);
    if (history.back().first.mul(history.back().second).sum().item<double>() <= 0) {
      history.clear();  // rounding: no curvature left to learn from
    }
    if (history.size() > kMemory) {
      history.pop_front();
    }
    w += step * d;
    std::tie(value, gradient) = next;
  }
  auto probe = unstandardised(w.slice(1, 0, -1), w.select(1, -1), standard);
  probe.steps = steps;
  return probe;
}

LinearProbe fit_ridge(
    const at::Tensor& features, const at::Tensor& labels, int64_t classes, double strength) {
  const auto raw = features.to(at::kDouble);
  const auto standard = standard_of(raw);
  const auto x = (raw - standard.mean) / standard.scale;  // [n, d], mean 0
  const auto y = at::one_hot(labels, classes).to(at::kDouble);
  const auto mean = y.mean(0);
  auto gram = x.t().matmul(x);
  gram.diagonal().add_(1 / strength);
  const auto weight = at::linalg_solve(gram, x.t().matmul(y - mean)).t();  // [c, d]
  return unstandardised(weight, mean, standard);
}

LinearProbe fit_probe(
    const at::Tensor& features,
    const at::Tensor& labels,
    int64_t classes,
    const Settings& settings) {
  const auto strength = settings.strength.value_or(1);
  return settings.ridge.value_or(false) ? fit_ridge(features, labels, classes, strength)
                                        : fit_logistic(features, labels, classes, strength);
}

}  // namespace theseus::evaluate
