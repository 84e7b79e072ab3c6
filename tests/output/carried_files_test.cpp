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
  written.write(0, 12, one("a", 1), {{{"row", 1}}});
  written.write(12, 13, one("b", 2), {{{"row", 12}}});
  written.sync();
  written.sync();
  CarriedFiles all(directory.path()), some(directory.path());
  all.open(13);
  EXPECT_EQ(written.end(), 13);
  EXPECT_EQ(all.size(), 2U);
  EXPECT_EQ(all.rows().dump(), R"([{"row":1},{"row":12}])");
  EXPECT_TRUE(at::equal(all.read("b").delta, at::full({2}, 2.0)));
  EXPECT_EQ(all.read("a").target_norm, 2);
  EXPECT_EQ(some.open_group(12), 13);
  EXPECT_FALSE(some.contains("a"));
  EXPECT_TRUE(some.contains("b"));
}

// What was not synced when the machine went down may be there and empty.
TEST(CarriedFiles, WhatComesAgainGoesFirst) {
  const ScratchDir directory;
  CarriedFiles written(directory.path());
  written.write(0, 2, one("a", 1), nlohmann::ordered_json::array());
  written.write(2, 3, one("b", 1), nlohmann::ordered_json::array());
  directory.file("carried-2.json", "");
  directory.file("carried-10.json", "");
  EXPECT_ANY_THROW(CarriedFiles(directory.path()).open(3));
  written.drop_from(2);
  CarriedFiles left(directory.path());
  left.open(2);
  EXPECT_EQ(left.size(), 1U);
  EXPECT_TRUE(left.contains("a"));
}

// What says where a job stands says what must be there.
TEST(CarriedFiles, AGroupThatIsGoneOrAnotherIsRefused) {
  const auto none = nlohmann::ordered_json::array();
  const auto refused = [](const ScratchDir& directory, const std::string& name) {
    try {
      CarriedFiles(directory.path()).open(4);
      ADD_FAILURE() << "opened without " << name;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("--fresh"), std::string::npos) << error.what();
    }
  };
  for (const char* name :
       {"carried-0.json", "carried-2.json", "carried-3.json", "carried-2.safetensors"}) {
    const ScratchDir directory;
    CarriedFiles written(directory.path());
    written.write(0, 2, {}, none);
    written.write(2, 3, one("a", 1), none);
    written.write(3, 4, {}, none);
    CarriedFiles(directory.path()).open(4);
    std::filesystem::remove(directory / name);
    refused(directory, name);
  }
  const ScratchDir directory, other;  // a whole file, and not the one that was written
  CarriedFiles(directory.path()).write(0, 4, one("a", 1), none);
  CarriedFiles(other.path()).write(0, 4, one("a", 2), none);
  std::filesystem::copy_file(
      other / "carried-0.safetensors", directory / "carried-0.safetensors",
      std::filesystem::copy_options::overwrite_existing);
  refused(directory, "carried-0.safetensors");
  CarriedFiles(directory.path()).write(0, 5, {}, none);  // more than the position says
  refused(directory, directory.path().string());
}

}  // namespace
}  // namespace theseus::output
