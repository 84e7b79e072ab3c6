#include "theseus/base/text.h"

#include <gtest/gtest.h>

namespace theseus {
namespace {

TEST(Printable, EscapesAndCuts) {
  EXPECT_EQ(printable("plain 'text'"), "plain 'text'");
  EXPECT_EQ(printable("\x1b[31m\xff\n"), "\\x1b[31m\\xff\\x0a");
  EXPECT_EQ(printable("abcdef", 3), "abc...");
  EXPECT_EQ(printable(""), "");
}

TEST(WithoutControls, KeepsLinesAndLetters) {
  EXPECT_EQ(
      without_controls("gr\xc3\xb6\xc3\x9f"
                       "e\n"),
      "gr\xc3\xb6\xc3\x9f"
      "e\n");
  EXPECT_EQ(without_controls("\x1b[2J\r\x7f"), "\\x1b[2J\\x0d\\x7f");
}

}  // namespace
}  // namespace theseus
