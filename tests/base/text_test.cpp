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

}  // namespace
}  // namespace theseus
