#include "theseus/machine/cores.h"

#include <fstream>

#include <gtest/gtest.h>

#include "theseus/base/temporary_directory.h"

namespace theseus::machine {
namespace {

class Cores : public ::testing::Test {
 protected:
  void add(int processor, const std::string& siblings) {
    const auto directory = root_.path() / ("cpu" + std::to_string(processor)) / "topology";
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "thread_siblings_list") << siblings << "\n";
  }

  TemporaryDirectory root_{"cores"};
};

TEST_F(Cores, TwoThreadsOfOneCoreAreOne) {
  add(0, "0-1");
  add(1, "0-1");
  EXPECT_EQ(count_cores({0, 1}, root_.path()), 1);
}

TEST_F(Cores, OnlyProcessorsThatMayBeUsedCount) {
  for (int i = 0; i < 4; ++i) {
    add(i, i % 2 == 0 ? "0,2" : "1,3");
  }
  EXPECT_EQ(count_cores({0, 1, 2, 3}, root_.path()), 2);
  EXPECT_EQ(count_cores({0, 2}, root_.path()), 1);
}

TEST_F(Cores, AreAsManyAsProcessorsWhereTheSystemDoesNotSay) {
  EXPECT_EQ(count_cores({0, 1, 2}, root_.path()), 3);
}

TEST_F(Cores, OfThisProcessAreSome) {
  EXPECT_GE(count_cores(allowed_processors()), 1);
}

}  // namespace
}  // namespace theseus::machine
