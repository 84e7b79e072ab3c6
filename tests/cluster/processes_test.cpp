#include "theseus/cluster/processes.h"

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/together.h"

namespace theseus::cluster {
namespace {

using tests::run_together;

void expect_no_errors(const std::vector<std::exception_ptr>& errors) {
  for (const auto& error : errors) {
    if (error) {
      try {
        std::rethrow_exception(error);
      } catch (const std::exception& found) {
        ADD_FAILURE() << found.what();
      }
    }
  }
}

// Sets variables for as long as it lives.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& values) : values_(values) {
    for (const auto& [name, value] : values_) {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~Environment() {
    for (const auto& [name, value] : values_) {
      ::unsetenv(name.c_str());
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::string> values_;
};

TEST(Place, IsAloneWithoutALauncher) {
  EXPECT_TRUE(find_place().alone());
  const Environment one({{"WORLD_SIZE", "1"}, {"RANK", "no number"}});
  EXPECT_TRUE(find_place().alone());
}

TEST(Place, IsWhatTheEnvironmentSays) {
  const Environment some(
      {{"WORLD_SIZE", "4"},
       {"RANK", "3"},
       {"LOCAL_WORLD_SIZE", "2"},
       {"LOCAL_RANK", "1"},
       {"MASTER_ADDR", "there"},
       {"MASTER_PORT", "29500"}});
  const auto place = find_place();
  EXPECT_EQ(place.size, 4);
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.local_size, 2);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.address, "there");
  EXPECT_EQ(place.port, 29500);
  EXPECT_FALSE(place.store_is_there);
  const std::map<std::string, std::string> zero = {{"THESEUS_WAIT_SECONDS", "0"}};
  const Environment wrong(zero);
  EXPECT_THROW(find_place(), InputError);
}

TEST(Processes, AloneGiveWhatTheyGet) {
  const Processes one;
  auto value = at::full({2}, 3.0, at::kDouble);
  one.sum(value);
  EXPECT_EQ(value.sum().item<double>(), 6);
  EXPECT_EQ(one.from_first("me"), "me");
  EXPECT_TRUE(one.gather_in_first({"me", {}}).empty());
}

TEST(Processes, SumWhateverTheShape) {
  for (const int size : {2, 3}) {
    expect_no_errors(run_together(size, [&](const Processes& processes) {
      const auto factor = static_cast<double>(processes.rank() + 1);
      const auto expected = static_cast<double>(size * (size + 1)) / 2;
      auto scalar = at::tensor(int64_t{processes.rank() + 1}, at::kLong);
      processes.sum(scalar);
      EXPECT_EQ(scalar.item<int64_t>(), static_cast<int64_t>(expected));
      auto turned = (at::ones({3, 5}, at::kDouble) * factor).t();
      processes.sum(turned);
      EXPECT_TRUE(at::equal(turned, at::full({5, 3}, expected, at::kDouble)));
      auto large = at::full({(int64_t{1} << 23) + 7}, factor, at::kDouble);  // more than one piece
      processes.sum(large);
      EXPECT_TRUE((large == expected).all().item<bool>());
      auto none = at::empty({0}, at::kDouble);
      processes.sum(none);
      auto half = at::ones({2}, at::kFloat);
      EXPECT_THROW(processes.sum(half), InternalError);
    }));
  }
}

TEST(Processes, TellEachOther) {
  const tests::ScratchDir scratch;
  expect_no_errors(run_together(3, [&](const Processes& processes) {
    const auto rank = processes.rank();
    EXPECT_EQ(processes.from_first(rank == 0 ? "first" : "another"), "first");
    const auto infinity = std::numeric_limits<double>::infinity();
    const Parcel mine{
        c10::str("of ", rank),
        {at::full({2, 3}, rank, at::kFloat), at::tensor({infinity}, at::kDouble), at::empty({0})}};
    const auto parcel = processes.from_first(mine);
    EXPECT_EQ(parcel.text, "of 0");
    EXPECT_TRUE(at::equal(parcel.tensors.at(0), at::zeros({2, 3}, at::kFloat)));
    const auto all = processes.gather_in_first(mine);
    ASSERT_EQ(all.size(), rank == 0 ? 2u : 0u);
    if (rank == 0) {
      EXPECT_EQ(all[1].text, "of 2");
      EXPECT_TRUE(at::equal(all[1].tensors.at(0), at::full({2, 3}, 2, at::kFloat)));
      EXPECT_EQ(all[1].tensors.at(1).item<double>(), infinity);
    }
    const auto file = scratch / c10::str("file-", rank);
    if (rank == 0) {
      std::ofstream(file) << "contents";
    }
    processes.copy_from_first(file);
    std::ifstream in(file);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "contents");
  }));
}

TEST(Processes, MissOneThatIsLost) {
  const auto errors = run_together(2, [&](const Processes& processes) {
    if (processes.rank() == 1) {
      throw InputError("lost");  // its connections close, and it tells nobody
    }
    auto value = at::ones({1}, at::kDouble);
    processes.sum(value);
  });
  tests::expect_parts(
      tests::error_of([&] { std::rethrow_exception(errors[0]); }), "another process has ended",
      "the same command goes on");
}

}  // namespace
}  // namespace theseus::cluster
