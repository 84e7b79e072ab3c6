#include "theseus/data/part.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/support/expect_error.h"

namespace theseus::data {
namespace {

Examples numbered(int64_t count) {
  Examples examples;
  examples.split = "train";
  for (int64_t i = 0; i < count; ++i) {
    examples.names.push_back(std::to_string(i));
    examples.labels.push_back(i % 3);
  }
  examples.text = [](int64_t i) { return Fields{{"text", std::to_string(i)}}; };
  return examples;
}

TEST(Part, PartsShareNothingAndMakeTheWhole) {
  const auto all = numbered(50);
  std::set<std::string> seen;
  for (const auto& words : {"train[0:60]", "train[60:80]", "train[80:100]"}) {
    const auto part = part_of(all, *find_part(words));
    EXPECT_EQ(part.split, words);
    for (int64_t i = 0; i < part.size(); ++i) {
      const auto& name = part.names[static_cast<size_t>(i)];
      EXPECT_TRUE(seen.insert(name).second) << name;
      EXPECT_EQ(part.text(i).at("text"), name);
      EXPECT_EQ(part.labels[static_cast<size_t>(i)], std::stoll(name) % 3);
    }
  }
  EXPECT_EQ(seen.size(), 50U);
  const auto first = part_of(all, {"train", 0, 50, 0}), other = part_of(all, {"train", 0, 50, 7});
  EXPECT_EQ(first.size(), 25);
  EXPECT_NE(first.names, other.names);
  EXPECT_NE(first.names.back(), "24");  // shuffled, not the first half
}

TEST(Part, Words) {
  EXPECT_FALSE(find_part("train"));
  EXPECT_FALSE(find_part(""));
  EXPECT_EQ(find_part("[80:100]@7")->seed, 7U);
  EXPECT_EQ(part_words(*find_part("val[5:10]@7")), "val[5:10]@7");
  for (const auto* words : {"train[80:80]", "train[80:101]", "[9:1]"}) {
    tests::expect_parts(tests::error_of([&] { find_part(words); }), words, "hundredths");
  }
  tests::expect_parts(
      tests::error_of([] {
        part_of(numbered(3), {"", 80, 90});
      }),
      "of 3 examples are none");
}

}  // namespace
}  // namespace theseus::data
