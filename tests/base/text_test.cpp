#include "theseus/base/text.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace theseus {
namespace {

TEST(Printable, LeavesPlainTextAsItIs) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("layers.0 ~weight\\"), "layers.0 ~weight\\");
}

TEST(Printable, SpellsOutEveryOtherByte) {
  EXPECT_EQ(printable("\x1b[31m\n\t"), R"(\x1b[31m\x0a\x09)");
  EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4)), R"(a\x00b\x7f)");
  EXPECT_EQ(printable("\xff\x80"), R"(\xff\x80)");
}

TEST(Printable, CutsWhatIsTooLong) {
  EXPECT_EQ(printable("abcde", 5), "abcde");
  EXPECT_EQ(printable("abcdef", 5), "abcde...");
  EXPECT_EQ(printable(std::string(1000, 'x')).size(), 123U);
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
