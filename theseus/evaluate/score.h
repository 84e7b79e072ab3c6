#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace theseus::evaluate {

// 95 % of a normal distribution lie within this many standard deviations.
inline constexpr double kNormal95 = 1.959963984540054;

// A number that was measured on `count` examples, with a 95 % confidence interval.
struct Score {
  std::string metric;  // "accuracy", "perplexity", "rouge_l"
  double value = 0;
  double low = 0, high = 0;
  int64_t count = 0;
  bool higher_is_better = true;
};

// Wilson's interval of `right` out of `all`.
Score accuracy(int64_t right, int64_t all);

// Mean of per-example values by its normal interval.
Score mean_score(const std::string& metric, double sum, double sum_of_squares, int64_t count);

nlohmann::ordered_json describe(const Score& score);

}  // namespace theseus::evaluate
