#include "theseus/data/class_match.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

using Names = std::vector<std::string>;
using Places = std::vector<int64_t>;

Places match(const Names& head, const Names& data, std::string& note) {
  return match_classes({.whose = "the head", .count = std::ssize(head), .names = head}, data, note);
}

Places match(const Names& head, const Names& data) {
  std::string note;
  return match(head, data, note);
}

TEST(ClassMatch, TakesNamesThatAreSpelledOtherwise) {
  std::string note;
  EXPECT_EQ(
      match(
          {"NEGATIVE", "very_positive", "The Cat", "caf\xc3\xa9"},
          {"negative", "Very Positive", "cat", "CAFE\xcc\x81"}, note),
      (Places{0, 1, 2, 3}));
  EXPECT_EQ(note, "");
  EXPECT_EQ(match({"AnnualCrop", "hot-dog"}, {"annual crop", "hotdog"}), (Places{0, 1}));
}

TEST(ClassMatch, PairsAnotherOrderByName) {
  std::string note;
  EXPECT_EQ(
      match(
          {"contradiction", "neutral", "entailment"}, {"Entailment", "Neutral", "Contradiction"},
          note),
      (Places{2, 1, 0}));
  EXPECT_NE(note.find("paired by their names"), std::string::npos);
  // Numbers are names, too, where both sides have the same: folders are sorted as text.
  EXPECT_EQ(match({"0", "1", "2", "10"}, {"0", "1", "10", "2"}), (Places{0, 1, 3, 2}));
}

TEST(ClassMatch, NamesThatFoldToOneMustBeExact) {
  EXPECT_EQ(match({"a", "A", "b"}, {"A", "a", "b"}), (Places{1, 0, 2}));
  const auto error = tests::error_of([] { match({"a", "A", "b"}, {"a", "A", "B"}); });
  tests::expect_parts(error, "not the same classes");
  EXPECT_EQ(match({"-1", "1"}, {"1", "-1"}), (Places{1, 0}));
  EXPECT_EQ(match({"a", "an", "the"}, {"The", "An", "A"}), (Places{2, 1, 0}));
}

TEST(ClassMatch, TakesEqualListsAsTheyStand) {
  std::string note;
  EXPECT_EQ(
      match({"crane", "maillot", "crane"}, {"crane", "maillot", "crane"}, note), (Places{0, 1, 2}));
  EXPECT_EQ(note, "");
  tests::expect_parts(
      tests::error_of([] {
        match({"crane", "ox", "crane"}, {"crane", "crane", "ox"});
      }),
      "not the same classes");
}

TEST(ClassMatch, TakesNumbersWhereOneSideSaysNothing) {
  for (const auto& names :
       {Names{"LABEL_0", "LABEL_1"}, Names{"0", "1"}, Names{"class 0", "class 1"}}) {
    std::string note;
    EXPECT_EQ(match(names, {"objective", "subjective"}, note), (Places{0, 1}));
    EXPECT_NE(note.find("by their numbers"), std::string::npos);
    EXPECT_NE(note.find("objective, subjective"), std::string::npos);
    note.clear();
    EXPECT_EQ(match({"objective", "subjective"}, names, note), (Places{0, 1}));
    EXPECT_NE(note.find("by their numbers"), std::string::npos);
  }
  std::string note;
  EXPECT_EQ(
      match_classes({.whose = "the head", .count = 2, .names = {}}, {"x", "y"}, note),
      (Places{0, 1}));
  EXPECT_NE(note.find("the head has no names"), std::string::npos);
}

TEST(ClassMatch, RefusesOthers) {
  tests::expect_parts(
      tests::error_of([] {
        match({"negative", "positive"}, {"objective", "subjective"});
      }),
      "negative, positive", "objective, subjective", "not the same classes");
  tests::expect_parts(
      tests::error_of([] {
        match({"negative", "positive"}, {"negative", "neutral", "positive"});
      }),
      "the head has 2 classes and the data 3");
  tests::expect_parts(
      tests::error_of([] {
        match({"entailment", "not_entailment"}, {"entailment", "LABEL_1"});
      }),
      "not the same classes");
}

TEST(ClassMatch, NumbersExamples) {
  Examples examples{.names = {"1", "2", "3"}, .labels = {0, 1, 1}, .classes = {"x", "y"}};
  const auto note = number_as({.whose = "the head", .count = 2, .names = {"Y", "X"}}, examples);
  EXPECT_NE(note, "");
  EXPECT_EQ(examples.labels, (Places{1, 0, 0}));
  EXPECT_EQ(examples.classes, (Names{"y", "x"}));
  Examples numbers{.names = {"1"}, .labels = {1}};
  EXPECT_NE(
      number_as({.whose = "the head", .count = 2, .names = {"Y", "X"}}, numbers).find("numbers"),
      std::string::npos);
  EXPECT_EQ(numbers.labels, (Places{1}));
}

}  // namespace
}  // namespace theseus::data
