#include "theseus/evaluate/linear_probe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "theseus/base/json.h"

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

// Both classes have the same features: nothing can be told, and the gradient at the start is rounding.
TEST(LinearProbe, LogisticEndsWhereFeaturesTellNothing) {
  at::manual_seed(6);
  const auto half = at::randn({40, 5}, at::kDouble) * 3 + 0.1;
  const auto labels = at::cat({at::zeros(40, at::kLong), at::ones(40, at::kLong)});
  for (const double strength : {0.01, 1.0, 1e4}) {
    for (const auto& rows : {half, at::full({40, 5}, 0.1, at::kDouble), half * 1e-6, half * 1e6}) {
      const auto features = at::cat({rows, rows.flip(0)});
      const auto probe = fit_logistic(features, labels, 2, strength);
      const auto p = probe.scores(features).softmax(1);
      EXPECT_LT((p - 0.5).abs().max().item<double>(), 1e-6) << strength;
    }
  }
}

// Rounding of a constant feature is no deviation to divide by.
TEST(LinearProbe, AConstantFeatureChangesNothing) {
  const auto data = clouds();
  const auto constant = at::full({90, 1}, 0.1, at::kDouble);
  const auto with = fit_logistic(at::cat({data.features, constant}, 1), data.labels, 3, 1);
  const auto without = fit_logistic(data.features, data.labels, 3, 1);
  EXPECT_LT(with.weight.select(1, 6).abs().max().item<double>(), 1e-6);
  EXPECT_LT((with.weight.narrow(1, 0, 6) - without.weight).abs().max().item<double>(), 1e-6);
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

double accuracy_of(const at::Tensor& scores, const at::Tensor& labels) {
  return (scores.argmax(1) == labels).to(at::kDouble).mean().item<double>();
}

at::Tensor matrix(const nlohmann::json& rows) {
  std::vector<at::Tensor> result;
  for (const auto& row : rows) {
    result.push_back(at::tensor(row.get<std::vector<double>>(), at::kDouble));
  }
  return at::stack(result);
}

// The same minimum as scikit-learn finds, on examples that neither has seen: tools/goldens/probe.py. Our
// search ends when the gradient is 1e-6 of the first one, which leaves 1e-5 at the weakest decay.
TEST(LinearProbe, IsThatOfScikitLearn) {
  const auto golden =
      Json::parse_file(THESEUS_SOURCE_DIR "/tests/fixtures/evaluate/probe.json").raw();
  for (const auto& record : golden.at("cases")) {
    const int64_t classes = record.at("classes"), seen = record.at("seen");
    SCOPED_TRACE(classes);
    const auto features = matrix(record.at("features"));
    const auto labels = at::tensor(record.at("labels").get<std::vector<int64_t>>());
    const auto unseen = features.slice(0, seen), answers = labels.slice(0, seen);
    for (const auto& fit : record.at("fits")) {
      const double strength = fit.at("strength");
      SCOPED_TRACE(strength);
      const auto logistic =
          fit_logistic(features.slice(0, 0, seen), labels.slice(0, 0, seen), classes, strength)
              .scores(unseen);
      EXPECT_LT(
          (logistic.softmax(1) - matrix(fit.at("probabilities"))).abs().max().item<double>(), 5e-5);
      EXPECT_DOUBLE_EQ(accuracy_of(logistic, answers), fit.at("logistic_accuracy"));
      const auto ridge =
          fit_ridge(features.slice(0, 0, seen), labels.slice(0, 0, seen), classes, strength)
              .scores(unseen);
      EXPECT_LT((ridge - matrix(fit.at("ridge_scores"))).abs().max().item<double>(), 1e-9);
      EXPECT_DOUBLE_EQ(accuracy_of(ridge, answers), fit.at("ridge_accuracy"));
    }
  }
}

}  // namespace
}  // namespace theseus::evaluate
