#include "theseus/evaluate/linear_probe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace theseus::evaluate {
namespace {

struct Data {
  at::Tensor features;  // [n, d]
  at::Tensor labels;    // [n]
};

// Three clouds that overlap; one feature is constant, one is large.
Data clouds() {
  at::manual_seed(5);
  const auto labels = at::arange(90) % 3;
  auto features = at::randn({90, 6}, at::kDouble) * 1.5;
  features.select(1, 0) += labels;
  features.select(1, 1) -= 2 * (labels == 1).to(at::kDouble);
  features.select(1, 2) = 7;
  features.select(1, 3) = 1000 + 100 * features.select(1, 3);
  return {features, labels};
}

// Gradient of the objective at the probe, in standardised features: zero only at the one minimum.
double gradient_norm(const Data& data, const LinearProbe& probe, double strength) {
  const auto mean = data.features.mean(0), spread = data.features.std(0, false);
  const auto scale = at::where(spread > 0, spread, at::ones_like(spread));
  const auto x = (data.features - mean) / scale;
  const auto w = probe.weight * scale;
  const auto residual =
      probe.scores(data.features).softmax(1) - at::one_hot(data.labels, 3).to(at::kDouble);
  const auto weights = w + strength * residual.t().matmul(x);
  return std::sqrt(
      (weights.square().sum() + (strength * residual.sum(0)).square().sum()).item<double>());
}

TEST(LinearProbe, LogisticIsAtTheMinimum) {
  const auto data = clouds();
  for (const double strength : {0.01, 1.0, 100.0}) {
    const auto probe = fit_logistic(data.features, data.labels, 3, strength);
    EXPECT_LT(gradient_norm(data, probe, strength), 1e-4 * (1 + strength * 90)) << strength;
    EXPECT_GT(probe.steps, 2);
  }
}

TEST(LinearProbe, RidgeIsTheLeastSquaresSolution) {
  const auto data = clouds();
  const auto probe = fit_ridge(data.features, data.labels, 3, 10);
  const auto mean = data.features.mean(0), spread = data.features.std(0, false);
  const auto scale = at::where(spread > 0, spread, at::ones_like(spread));
  const auto x = (data.features - mean) / scale;
  const auto error = probe.scores(data.features) - at::one_hot(data.labels, 3).to(at::kDouble);
  const auto normal = x.t().matmul(error) + (probe.weight * scale).t() / 10;  // zero there
  EXPECT_LT(normal.abs().max().item<double>(), 1e-8);
  EXPECT_LT(error.sum(0).abs().max().item<double>(), 1e-8);  // the bias is free
}

TEST(LinearProbe, TellsCloudsApart) {
  const auto data = clouds();
  for (const auto& probe :
       {fit_logistic(data.features, data.labels, 3, 1),
        fit_ridge(data.features, data.labels, 3, 1)}) {
    const auto right = (probe.scores(data.features).argmax(1) == data.labels).sum().item<int64_t>();
    EXPECT_GT(right, 55);
  }
}

}  // namespace
}  // namespace theseus::evaluate
