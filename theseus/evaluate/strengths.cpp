#include "theseus/evaluate/strengths.h"

#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "theseus/base/error.h"

namespace theseus::evaluate {
namespace {

bool better(const Score& score, const Score& than) {
  return score.higher_is_better ? score.value > than.value : score.value < than.value;
}

}  // namespace

std::string note_without_gain(const Searched& found, const Score& base) {
  const double first = found.curve.front().at("alpha"), last = found.curve.back().at("alpha");
  auto best = base;
  best.value = found.best.at("value");
  const bool tried = last > 0;  // 0 alone says nothing of the update
  return !tried || better(best, base)
             ? ""
             : fmt::format(
                   "the update did not help: no strength from {:.3g} to {:.3g} is better than the "
                   "target alone, which has {} {:.4g}",
                   first, last, base.metric, base.value);
}

Searched search(
    const Strengths& strengths,
    const std::function<Score(double alpha)>& measure,
    const Watch& watch) {
  constexpr double kMost = 1e6;
  require(
      strengths.step > 0 && strengths.last >= strengths.first &&
          (strengths.last - strengths.first) / strengths.step < kMost,
      "strengths from ", strengths.first, " to ", strengths.last, " in steps of ", strengths.step,
      " are none, or too many");
  const auto count =
      static_cast<int64_t>(std::floor((strengths.last - strengths.first) / strengths.step + 1e-9)) +
      1;
  Searched found{.curve = nlohmann::ordered_json::array()};
  std::optional<Score> best;
  int64_t since = 0;
  for (int64_t i = 0; i < count && since < strengths.patience; ++i) {
    const auto alpha = strengths.first + static_cast<double>(i) * strengths.step;
    watch(i, count, "measuring");
    const auto score = measure(alpha);
    nlohmann::ordered_json row = {{"alpha", alpha}};
    row.update(describe(score));
    found.curve.push_back(row);
    ++since;
    if (!best || better(score, *best)) {
      best = score;
      found.best = row;
      found.at_the_end = i + 1 == count;
      since = 0;
    }
  }
  watch(count, count, "measured");
  return found;
}

}  // namespace theseus::evaluate
