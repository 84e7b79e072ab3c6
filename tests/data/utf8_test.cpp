#include "theseus/data/utf8.h"

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

using namespace std::string_literals;

TEST(Utf8, IsTold) {
  for (const auto& text :
       {""s, "plain"s, "caf\xc3\xa9"s, "\xe2\x82\xac"s, "\xf0\x9f\x99\x82"s, "\0"s, "\xed\x9f\xbf"s,
        "\xf4\x8f\xbf\xbf"s}) {
    EXPECT_TRUE(is_utf8(text)) << text;
  }
  // Latin-1, a lone continuation, one cut short, overlong forms, a surrogate, beyond U+10FFFF.
  for (const auto& text :
       {"caf\xe9"s, "\x80"s, "\xe2\x82"s, "\xc0\xaf"s, "\xe0\x80\xaf"s, "\xf0\x80\x80\xaf"s,
        "\xed\xa0\x80"s, "\xf4\x90\x80\x80"s, "\xff"s}) {
    EXPECT_FALSE(is_utf8(text)) << text;
  }
}

TEST(Utf8, SaysWhere) {
  EXPECT_EQ(utf8_text("\xef\xbb\xbf"s + "a", "f.txt"), "a");
  tests::expect_parts(
      tests::error_of([] { utf8_text("one\nnot \xe9 so\n", "f.txt"); }), "f.txt:2:", "byte 5",
      "\\xe9", "UTF-8");
  tests::expect_parts(
      tests::error_of([] {
        utf8_text(
            "\xff\xfe"
            "a"s,
            "f.txt");
      }),
      "f.txt", "UTF-16");
}

}  // namespace
}  // namespace theseus::data
