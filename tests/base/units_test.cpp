#include "theseus/base/units.h"

#include <gtest/gtest.h>

namespace theseus {
namespace {

TEST(DurationText, IsInTheUnitThatPeopleWouldUse) {
  EXPECT_EQ(duration_text(0.2), "0 s");
  EXPECT_EQ(duration_text(99.4), "99 s");
  EXPECT_EQ(duration_text(100), "2 minutes");
  EXPECT_EQ(duration_text(5'900), "98 minutes");
  EXPECT_EQ(duration_text(6'000), "1.7 hours");
}

TEST(Units, Bytes) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(999), "999 bytes");
  EXPECT_EQ(bytes_text(1000), "1.0 kB");
  EXPECT_EQ(bytes_text(12'345'678'901), "12.3 GB");
  EXPECT_EQ(bytes_text(INT64_MAX), "9.2 EB");
}

TEST(Units, Rates) {
  EXPECT_EQ(rate_text(12'345'678.9, "bytes"), "12.3 MB/s");
  EXPECT_EQ(rate_text(12.345, "steps"), "12.3 steps/s");
}

TEST(Units, Counts) {
  EXPECT_EQ(count_text(7), "7");
  EXPECT_EQ(count_text(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace theseus
