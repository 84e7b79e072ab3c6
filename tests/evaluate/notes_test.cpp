#include <gtest/gtest.h>

#include "theseus/evaluate/compare_notes.h"
#include "theseus/evaluate/strengths.h"

#include "tests/support/expect_error.h"

namespace theseus::evaluate {
namespace {

using nlohmann::ordered_json;

TEST(Notes, ComparisonsSayPromptsAndWhatDidNotHelp) {
  ordered_json record;
  add_prompts_of("cars", ordered_json{{"prompts", {"a {c}", "b {c}", "c {c}", "d {c}"}}}, record);
  add_prompts_of("texts", ordered_json{{"value", 1}}, record);
  EXPECT_EQ(record.at("prompts").size(), 1U);
  const auto table = ordered_json::parse(R"([
    {"method": "none", "cells": {"cars": {"value": 0.5}}},
    {"method": "pad", "cells": {"cars": {"value": 0.5, "alpha": 0, "validation": 0.5}}},
    {"method": "fixed", "cells": {"cars": {"value": 0.5, "alpha": 0}}},
    {"method": "procrustes", "cells": {"cars": {"value": 0.7, "alpha": 1, "validation": 0.7}}}])");
  std::vector<std::string> notes;
  add_notes(record, table, notes);
  EXPECT_EQ(
      notes,
      (std::vector<std::string>{
          "prompts of cars: a {c}, b {c}, c {c} and 1 more",
          "alpha 0: on the examples to choose by the update did not help at any strength: pad on "
          "cars"}));
}

// Values by alpha 0, 1, 2; smaller is better for perplexity.
std::string note_on(const std::vector<double>& values, double first, bool higher, double base) {
  const Strengths strengths{.first = first, .last = first + std::ssize(values) - 1.0, .step = 1};
  const auto score = [&](double value) {
    return Score{.metric = "m", .value = value, .higher_is_better = higher};
  };
  const auto found = search(
      strengths, [&](double alpha) { return score(values[static_cast<size_t>(alpha - first)]); },
      [](auto&&...) {});
  return note_without_gain(found, score(base));
}

TEST(Notes, SweepsSayWhenNothingHelped) {
  tests::expect_parts(
      note_on({0.5, 0.5, 0.25}, 0, true, 0.5), "the update did not help", "from 0 to 2", "m 0.5");
  EXPECT_EQ(note_on({0.5, 0.625, 0.25}, 0, true, 0.5), "");
  tests::expect_parts(note_on({7, 8}, 0, false, 7), "did not help");
  EXPECT_EQ(note_on({7, 6}, 0, false, 7), "");
  tests::expect_parts(note_on({0.5, 0.25}, 1, true, 0.75), "did not help", "from 1 to 2");
  EXPECT_EQ(note_on({0.5}, 0, true, 0.5), "");  // nothing was tried
}

}  // namespace
}  // namespace theseus::evaluate
