#include "theseus/evaluate/score.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"

namespace theseus::evaluate {

Score accuracy(int64_t right, int64_t all) {
  require(all > 0, "there are no examples to measure accuracy on");
  const auto n = static_cast<double>(all);
  const auto p = static_cast<double>(right) / n;
  const auto z2 = kNormal95 * kNormal95 / n;
  const auto centre = (p + z2 / 2) / (1 + z2);
  const auto half = kNormal95 / (1 + z2) * std::sqrt(p * (1 - p) / n + z2 / (4 * n));
  return {
      .metric = "accuracy",
      .value = p,
      .low = right == 0 ? 0 : centre - half,
      .high = right == all ? 1 : centre + half,
      .count = all};
}

Score mean_score(const std::string& metric, double sum, double sum_of_squares, int64_t count) {
  require(count > 0, "there are no examples to measure ", metric, " on");
  const auto n = static_cast<double>(count);
  const auto mean = sum / n;
  const auto variance =
      count > 1 ? std::max(sum_of_squares / n - mean * mean, 0.0) * n / (n - 1) : 0;
  const auto half = kNormal95 * std::sqrt(variance / n);
  return {.metric = metric, .value = mean, .low = mean - half, .high = mean + half, .count = count};
}

nlohmann::ordered_json describe(const Score& score) {
  return {
      {"metric", score.metric},
      {"value", score.value},
      {"low", score.low},
      {"high", score.high},
      {"count", score.count}};
}

}  // namespace theseus::evaluate
