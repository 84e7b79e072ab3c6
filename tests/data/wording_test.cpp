#include "theseus/data/wording.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

using tests::error_of;
using tests::expect_parts;

const Fields kFields = {{"premise", "It rains."}, {"hypothesis", "It is {wet}."}};

TEST(Wording, FillsFieldsAndTheClass) {
  const std::string name = "entailment";
  const auto worded = fill(
      Wording{"mnli hypothesis: {hypothesis} premise: {premise}", "{premise}", "{class}"}, kFields,
      &name);
  EXPECT_EQ(worded.first, "mnli hypothesis: It is {wet}. premise: It rains.");
  EXPECT_EQ(worded.second, "It rains.");
  EXPECT_EQ(worded.answer, "entailment");
}

TEST(Wording, DoubledBracesAreBraces) {
  EXPECT_EQ(fill("{{{premise}}} {{x}}", kFields), "{It rains.} {x}");
  EXPECT_EQ(fill("", kFields), "");
  EXPECT_EQ(fill("no fields", kFields), "no fields");
}

TEST(Wording, UnknownFieldNamesThoseThereAre) {
  expect_parts(error_of([] { fill("{text}", kFields); }), "'text'", "hypothesis, premise", "{{");
  expect_parts(error_of([] { fill("{}", kFields); }), "field ''");
  expect_parts(error_of([] { fill("{x}", {}); }), "none");
}

TEST(Wording, ClassWithoutNamesIsAnError) {
  expect_parts(error_of([] { fill("{class}", kFields); }), "no class names");
}

TEST(Wording, BracesMustMatch) {
  expect_parts(error_of([] { fill("a {premise", kFields); }), "letter 3");
  expect_parts(error_of([] { fill("a } b", kFields); }), "letter 3", "}}");
}

TEST(Wording, TemplatesTakeTheClass) {
  EXPECT_EQ(fill_template("a {c}, the {c}.", "cat"), "a cat, the cat.");
  expect_parts(error_of([] { fill_template("a photo.", "cat"); }), "a photo.", "{c}");
}

}  // namespace
}  // namespace theseus::data
