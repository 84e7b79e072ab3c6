#include "theseus/output/carried_files.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

using tests::ScratchDir;

std::map<std::string, transport::Carried> one(const std::string& name, double value) {
  return {{name, {.delta = at::full({2}, value), .source_norm = 1, .target_norm = 2}}};
}

TEST(CarriedFiles, GroupsOpenTogetherOrAlone) {
  const ScratchDir directory;
  CarriedFiles written(directory.path());
  written.write(1, one("a", 1), {{{"row", 1}}});
  written.write(12, one("b", 2), {{{"row", 12}}});
  written.sync();
  written.sync();
  CarriedFiles all(directory.path()), some(directory.path());
  all.open();
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(all.rows().dump(), R"([{"row":1},{"row":12}])");
  EXPECT_TRUE(at::equal(all.read("b").delta, at::full({2}, 2.0)));
  EXPECT_EQ(all.read("a").target_norm, 2);
  some.open(12);
  EXPECT_FALSE(some.contains("a"));
  EXPECT_TRUE(some.contains("b"));
}

// What was not synced when the machine went down may be there and empty.
TEST(CarriedFiles, WhatComesAgainGoesFirst) {
  const ScratchDir directory;
  CarriedFiles written(directory.path());
  written.write(1, one("a", 1), nlohmann::ordered_json::array());
  written.write(2, one("b", 1), nlohmann::ordered_json::array());
  directory.file("carried-2.json", "");
  directory.file("carried-10.json", "");
  EXPECT_ANY_THROW(CarriedFiles(directory.path()).open());
  written.drop_from(2);
  CarriedFiles left(directory.path());
  left.open();
  EXPECT_EQ(left.size(), 1U);
  EXPECT_TRUE(left.contains("a"));
}

}  // namespace
}  // namespace theseus::output
