#include <gtest/gtest.h>

#include "theseus/data/text/added_tokens.h"
#include "theseus/data/text/byte_names.h"
#include "theseus/data/text/html.h"
#include "theseus/data/text/normalise.h"
#include "theseus/data/text/pattern.h"
#include "theseus/data/text/split.h"
#include "theseus/data/text/unicode.h"

#include "tests/support/expect_error.h"

namespace theseus::tests {
namespace {

using namespace data::text;

TEST(Text, BrokenSequencesAreReplacedPartByPart) {
  // As Python's decode(errors="replace"): one for each maximal part.
  EXPECT_EQ(repaired("\xF0\x9F\x98").text, "\xEF\xBF\xBD");
  EXPECT_EQ(repaired("\xED\xA0\x80").text, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(repaired("\xC0\xAFz").text, "\xEF\xBF\xBD\xEF\xBF\xBDz");
  EXPECT_EQ(repaired("\xE4\xB8(").text, "\xEF\xBF\xBD(");
  EXPECT_EQ(repaired("\xE4\xB8(").origin({3, 4}), (Range{2, 3}));
}

TEST(Text, ComposedCharactersStandForAllTheirParts) {
  const Aligned made = unicode_form(repaired("ae\xCC\x81z"), Form::kNfc);
  EXPECT_EQ(made.text, "a\xC3\xA9z");
  EXPECT_EQ(made.origin({1, 3}), (Range{1, 4}));
  EXPECT_EQ(made.origin({3, 4}), (Range{4, 5}));
}

TEST(Text, UnicodeForms) {
  const auto form = [](std::string_view in, Form which) {
    return unicode_form(repaired(in), which).text;
  };
  EXPECT_EQ(form("q\xCC\x87\xCC\xA3", Form::kNfc), "q\xCC\xA3\xCC\x87");  // marks in order
  EXPECT_EQ(form("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB", Form::kNfc), "\xED\x95\x9C");  // Hangul
  EXPECT_EQ(form("\xED\x95\x9C", Form::kNfd), "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB");
  EXPECT_EQ(form("\xEF\xAC\x81", Form::kNfkc), "fi");
  EXPECT_EQ(form("\xEF\xBD\xB6\xEF\xBE\x9E", Form::kNfkc), "\xE3\x82\xAC");  // halfwidth ga
  EXPECT_EQ(
      form("\xEA\xB0\x80\xE1\x86\xA7", Form::kNfc), "\xEA\xB0\x80\xE1\x86\xA7");  // not swallowed
}

TEST(Text, LowerCase) {
  EXPECT_EQ(lower_case(repaired("\xC4\xB0")).text, "i\xCC\x87");
  EXPECT_EQ(lower_case(repaired("\xCE\x91\xCE\xA3")).text, "\xCE\xB1\xCF\x83");
  EXPECT_EQ(lower_case(repaired("\xCE\x91\xCE\xA3."), true).text, "\xCE\xB1\xCF\x82.");
  EXPECT_EQ(
      lower_case(repaired("\xCE\x91\xCE\xA3.\xCE\x91"), true).text, "\xCE\xB1\xCF\x83.\xCE\xB1");
  EXPECT_EQ(lower_case(repaired("\xCE\xA3"), true).text, "\xCF\x83");
}

TEST(Text, HtmlReferences) {
  const auto unescaped = [](std::string_view in) { return html_unescaped(repaired(in)).text; };
  EXPECT_EQ(unescaped("&amp;lt; &lt &LT;"), "&lt; < <");
  EXPECT_EQ(unescaped("&notit; &notin; &bogus; &"), "\xC2\xACit; \xE2\x88\x89 &bogus; &");
  EXPECT_EQ(
      unescaped("&#65;&#x42&#128;&#0;&#1;&#xD800;&#99999999999;"),
      "AB\xE2\x82\xAC\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(html_unescaped(repaired("a&amp;b")).origin({1, 2}), (Range{1, 6}));
}

TEST(Text, PatternsMeanWhatOnigurumaMeans) {
  const auto count = [](std::string_view expression, std::string_view text) {
    return Pattern(expression, "here").matches(text).size();
  };
  EXPECT_EQ(count("\\s", "\xE1\xA0\x8E \xC2\xA0"), 2u);  // U+180E is no white space
  EXPECT_EQ(
      count(
          "[^\\s]+",
          "a b\xE3\x80\x80"
          "c"),
      3u);
  EXPECT_EQ(count("\\w+", "e\xCC\x81_1 x"), 2u);
  EXPECT_EQ(count("(?i:'s)", "'S 's"), 2u);
  EXPECT_EQ(count(Pattern::quoted("a.b*[c]"), "a.b*[c] axb"), 1u);
  expect_parts(error_of([&] { count("[a[b]]", ""); }), "here", "a class in a class");
}

TEST(Text, MatchesAreArranged) {
  const auto pattern = std::make_shared<const Pattern>("-", "here");
  const auto split = [&pattern](Matches matches, bool invert) {
    Words words = {repaired("a-b--c"), {{0, 6}}};
    split_at(pattern, matches, invert)(words);
    std::string out;
    for (const Range& range : words.ranges) {
      out += words.text.text.substr(range.begin, range.size()) + "|";
    }
    return out;
  };
  EXPECT_EQ(split(Matches::kRemoved, false), "a|b|c|");
  EXPECT_EQ(split(Matches::kRemoved, true), "-|-|-|");
  EXPECT_EQ(split(Matches::kIsolated, false), "a|-|b|-|-|c|");
  EXPECT_EQ(split(Matches::kMergedWithPrevious, false), "a-|b-|-|c|");
  EXPECT_EQ(split(Matches::kMergedWithNext, false), "a|-b|-|-c|");
  EXPECT_EQ(split(Matches::kContiguous, false), "a|-|b|--|c|");
}

TEST(Text, AddedTokensAreLeftmostAndLongest) {
  const AddedTokens tokens(
      {{.content = "<a>", .id = 1},
       {.content = "<a>b", .id = 2},
       {.content = "w", .id = 3, .single_word = true},
       {.content = "|", .id = 4, .left_strip = true, .right_strip = true}});
  const auto parts = tokens.cut("<a>bw w  |\t x");
  ASSERT_EQ(parts.size(), 5u);
  EXPECT_EQ(parts[0].token, 1u);
  EXPECT_FALSE(parts[1].token);  // "w " touches no token of a single word
  EXPECT_EQ(parts[1].range, (Range{4, 6}));
  EXPECT_EQ(parts[2].token, 2u);
  EXPECT_EQ(parts[3].range, (Range{7, 12}));
  EXPECT_EQ(parts[4].range, (Range{12, 13}));
}

TEST(Text, ByteNames) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes.push_back(static_cast<char>(i));
  }
  EXPECT_EQ(from_byte_names(to_byte_names(bytes)), bytes);
  EXPECT_EQ(to_byte_names(" \n"), "\xC4\xA0\xC4\x8A");
  EXPECT_EQ(from_byte_names("\xE2\x82\xAC"), "\xE2\x82\xAC");
}

}  // namespace
}  // namespace theseus::tests
