#include "theseus/base/json.h"

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "theseus/base/error.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus {
namespace {

using tests::error_of;

Json parse(const std::string& text) {
  return Json::parse(text, "config.json");
}

std::string refusal(const std::string& text) {
  return error_of([&] { parse(text); });
}

std::string nested(size_t levels) {
  // The outermost object is a level, too.
  return R"({"a": )" + std::string(levels - 1, '[') + std::string(levels - 1, ']') + "}";
}

TEST(Json, ReadsEveryKind) {
  const auto json = parse(R"({"width": 768, "eps": 1e-6, "bias": true, "act": "gelu",
                              "inner": {"depth": 12}, "sizes": [1, 2], "names": ["a", "b"]})");
  EXPECT_EQ(json.integer("width"), 768);
  EXPECT_DOUBLE_EQ(json.number("eps"), 1e-6);
  EXPECT_DOUBLE_EQ(json.number("width"), 768);
  EXPECT_TRUE(json.boolean("bias", false));
  EXPECT_EQ(json.text("act"), "gelu");
  EXPECT_EQ(json.object("inner").integer("depth"), 12);
  EXPECT_EQ(json.integers("sizes"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(json.texts("names"), (std::vector<std::string>{"a", "b"}));
}

TEST(Json, OneValueIsAListOfOne) {
  const auto json = parse(R"({"size": 224, "name": "a", "none": []})");
  EXPECT_EQ(json.integers("size"), std::vector<int64_t>{224});
  EXPECT_EQ(json.texts("name"), std::vector<std::string>{"a"});
  EXPECT_TRUE(json.integers("none").empty());
  EXPECT_TRUE(json.texts("none").empty());
}

TEST(Json, NullCountsAsAbsent) {
  const auto json = parse(R"({"width": null})");
  EXPECT_FALSE(json.has("width"));
  EXPECT_FALSE(json.has("depth"));
  for (const char* key : {"width", "depth"}) {
    EXPECT_EQ(json.integer(key, 7), 7);
    EXPECT_DOUBLE_EQ(json.number(key, 0.5), 0.5);
    EXPECT_TRUE(json.boolean(key, true));
    EXPECT_EQ(json.text(key, "gelu"), "gelu");
    EXPECT_TRUE(json.integers(key).empty());
    EXPECT_TRUE(json.texts(key).empty());
    EXPECT_EQ(json.dump(key), "null");
    EXPECT_EQ(
        error_of([&] { json.integer(key); }), std::string("config.json: ") + key + " is missing");
  }
  EXPECT_EQ(json.keys(), std::vector<std::string>{"width"});
}

TEST(Json, AFallbackDoesNotHideAWrongType) {
  const auto json = parse(R"({"width": "768"})");
  EXPECT_THROW(json.integer("width", 1), InputError);
  EXPECT_THROW(json.number("width", 1), InputError);
  EXPECT_THROW(json.boolean("width", true), InputError);
  EXPECT_THROW(parse(R"({"act": 1})").text("act", "gelu"), InputError);
}

TEST(Json, MessagesNameFilePathAndWhatWasFound) {
  const auto json = parse(R"({"text_config": {"hidden_size": "768", "deep": {"x": [1, "a"]}},
                              "b": 1, "list": [], "half": 0.5})");
  const auto text = json.object("text_config");
  EXPECT_EQ(
      error_of([&] { text.integer("hidden_size"); }),
      "config.json: text_config.hidden_size: expected an integer, found \"768\"");
  EXPECT_EQ(
      error_of([&] { text.object("deep").integers("x"); }),
      "config.json: text_config.deep.x: expected a list of integers, found \"a\"");
  EXPECT_EQ(
      error_of([&] { json.integer("half"); }), "config.json: half: expected an integer, found 0.5");
  EXPECT_EQ(error_of([&] { json.object("b"); }), "config.json: b: expected an object, found 1");
  EXPECT_EQ(
      error_of([&] { json.text("list"); }), "config.json: list: expected a string, found a list");
  EXPECT_EQ(
      error_of([&] { json.boolean("b", false); }),
      "config.json: b: expected true or false, found 1");
  EXPECT_EQ(
      error_of([&] { json.number("text_config"); }),
      "config.json: text_config: expected a finite number, found an object");
  EXPECT_EQ(
      error_of([&] { json.texts("b"); }), "config.json: b: expected a list of strings, found 1");
  EXPECT_EQ(
      error_of([&] { text.object("deep").texts("x"); }),
      "config.json: text_config.deep.x: expected a list of strings, found 1");
  EXPECT_EQ(
      error_of([&] { text.object("missing"); }), "config.json: text_config.missing is missing");
}

TEST(Json, WhereNamesTheValue) {
  const auto json = parse(R"({"a": {"b": {}}})");
  EXPECT_EQ(json.where(), "config.json");
  EXPECT_EQ(json.where("a"), "config.json: a");
  EXPECT_EQ(json.object("a").where(), "config.json: a");
  EXPECT_EQ(json.object("a").object("b").where("c"), "config.json: a.b.c");
}

TEST(Json, AnInnerObjectOutlivesItsDocument) {
  const auto inner = [] { return parse(R"({"a": {"b": 3}})").object("a"); }();
  EXPECT_EQ(inner.integer("b"), 3);
}

TEST(Json, IntegersKeepTheirWholeRangeAndNothingMore) {
  const auto json = parse(
      R"({"max": 9223372036854775807, "min": -9223372036854775808, "above": 9223372036854775808,
          "far": 18446744073709551616, "below": -9223372036854775809, "float": 3.0,
          "list": [1, 9223372036854775808], "bool": true})");
  EXPECT_EQ(json.integer("max"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(json.integer("min"), std::numeric_limits<int64_t>::min());
  for (const char* key : {"above", "far", "below", "float", "bool"}) {
    EXPECT_THROW(json.integer(key), InputError) << key;
    EXPECT_THROW(json.integers(key), InputError) << key;
  }
  EXPECT_THROW(json.integers("list"), InputError);
  EXPECT_EQ(
      error_of([&] { json.integer("above"); }),
      "config.json: above: expected an integer, found 9223372036854775808");
}

TEST(Json, NumbersAreFinite) {
  EXPECT_NE(refusal(R"({"eps": 1e999})").find("config.json: not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(R"({"eps": NaN})").find("config.json: not valid JSON"), std::string::npos);
  EXPECT_NE(refusal(R"({"eps": Infinity})").find("not valid JSON"), std::string::npos);
  EXPECT_THROW(parse(R"({"eps": true})").number("eps"), InputError);
}

TEST(Json, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(refusal(R"({"a": 1, "a": 2})"), "config.json: the name 'a' appears twice");
  EXPECT_EQ(refusal(R"({"x": [{"a": 1, "a": 1}]})"), "config.json: the name 'a' appears twice");
  EXPECT_EQ(refusal(R"({"a": 1, "\u0061": 2})"), "config.json: the name 'a' appears twice");
  EXPECT_NO_THROW(parse(R"({"a": {"a": 1}, "b": {"a": 2}, "c": [{"a": 1}, {"a": 2}]})"));
}

TEST(Json, RefusesDeepNesting) {
  EXPECT_NO_THROW(parse(nested(64)));
  EXPECT_EQ(refusal(nested(65)), "config.json: nested deeper than 64 levels");
  EXPECT_EQ(refusal(nested(1'000'000)), "config.json: nested deeper than 64 levels");
}

TEST(Json, RefusesWhatIsNotAnObject) {
  EXPECT_EQ(refusal("[1]"), "config.json: expected a JSON object, found a list");
  EXPECT_EQ(refusal("3"), "config.json: expected a JSON object, found 3");
  EXPECT_EQ(refusal("null"), "config.json: expected a JSON object, found null");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text :
       {"", " ", "{", "{\"a\"}", "{\"a\": 1,}", "{\"a\": 1} x", "{'a': 1}", "{\"a\": 01}",
        "{\"a\": \"\x01\"}", "{\"a\": \"\xff\"}", "{\"a\": \"\\ud800\"}", "// c\n{}"}) {
    EXPECT_EQ(refusal(text).rfind("config.json: not valid JSON: ", 0), 0U) << text;
  }
}

TEST(Json, MessagesStayShort) {
  const std::string huge(1 << 20, 'x');
  EXPECT_LT(refusal("{\"a\": [\"" + huge + "\" 1]}").size(), 500U);
  EXPECT_LT(refusal("{\"" + huge + "\": 1, \"" + huge + "\": 2}").size(), 200U);
  const auto json = parse("{\"a\": \"" + huge + "\"}");
  EXPECT_LT(error_of([&] { json.integer("a"); }).size(), 200U);
}

TEST(Json, DumpIsCompactShortAndPrintable) {
  EXPECT_EQ(parse(R"({"a": {"c": [1, 2], "b": "x"}})").dump("a"), R"({"b":"x","c":[1,2]})");
  EXPECT_EQ(
      parse("{\"a\": \"" + std::string(100, 'x') + "\"}").dump("a"),
      "\"" + std::string(79, 'x') + "...");
  EXPECT_EQ(parse("{\"a\": \"\u00e9\"}").dump("a"), R"("\xc3\xa9")");
}

TEST(Json, NamesInMessagesCannotWriteToTheTerminal) {
  EXPECT_EQ(
      refusal(R"({"\u001b[2J": 1, "\u001b[2J": 2})"),
      R"(config.json: the name '\x1b[2J' appears twice)");
}

// Quadratic work would take minutes here.
TEST(Json, ReadsManyObjectsInOneObject) {
  std::string text = "{";
  for (int i = 0; i < 200000; ++i) {
    text += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{\"a\":1}";
  }
  EXPECT_EQ(parse(text + "}").object("199999").integer("a"), 1);
}

TEST(Json, EqualsComparesValues) {
  const auto json = parse(R"({"a": 1, "b": "x"})");
  EXPECT_TRUE(json.equals("a", "1.0"));
  EXPECT_TRUE(json.equals("b", "\"x\""));
  EXPECT_TRUE(json.equals("absent", "null"));
  EXPECT_FALSE(json.equals("a", "2"));
}

TEST(Json, KeysAreSorted) {
  EXPECT_EQ(
      parse(R"({"b": 1, "a": null, "c": {}})").keys(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(parse("{}").keys().empty());
}

TEST(Json, ReadsAFileAndNamesIt) {
  const tests::ScratchDir directory;
  const auto path = directory / "config.json";
  tests::write_bytes(path, "\xef\xbb\xbf{\"width\": 3}");  // some editors put a byte order mark
  EXPECT_EQ(Json::parse_file(path).integer("width"), 3);
  EXPECT_EQ(
      error_of([&] { Json::parse_file(path).integer("depth"); }),
      path.string() + ": depth is missing");
  EXPECT_NE(
      error_of([&] { Json::parse_file(directory / "none.json"); }).find("none.json"),
      std::string::npos);
  EXPECT_THROW(Json::parse_file(directory.path()), InputError);
}

TEST(Json, RefusesAHugeFileBeforeReadingIt) {
  const tests::ScratchDir directory;
  const auto path = directory / "config.json";
  tests::write_bytes(path, "{}");
  std::filesystem::resize_file(path, (int64_t{64} << 20) + 1);
  EXPECT_EQ(
      error_of([&] { Json::parse_file(path); }),
      path.string() + " is 67108865 bytes; at most 67108864 are read");
}

}  // namespace
}  // namespace theseus
