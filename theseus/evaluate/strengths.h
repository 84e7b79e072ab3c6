#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/evaluate/evaluate.h"
#include "theseus/evaluate/score.h"

namespace theseus::evaluate {

// Strengths to try, in order: `first`, `first` + `step`, ... up to `last`; the search ends after
// `patience` of them without a gain.
struct Strengths {
  double first = 0;
  double last = 5;
  double step = 0.1;
  int64_t patience = 10;
};

// The curve and the best of it, which is the smallest strength of the best value.
struct Searched {
  nlohmann::ordered_json curve, best;
  bool at_the_end = false;  // the best is the last that was allowed
};

constexpr const char* kAtTheEnd = "the best strength is the last one: a larger one may be better";

// Says so when no strength was better than `base`, the model without the update; else empty.
std::string note_without_gain(const Searched& found, const Score& base);

// Throws InputError when there is no strength to try.
Searched search(
    const Strengths& strengths,
    const std::function<Score(double alpha)>& measure,
    const Watch& watch);

}  // namespace theseus::evaluate
