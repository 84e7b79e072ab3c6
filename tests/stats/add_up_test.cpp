#include "theseus/stats/add_up.h"

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "tests/support/job.h"
#include "tests/support/together.h"

namespace theseus::stats {
namespace {

constexpr Grams kBothGrams = {.source = true, .target = true};

at::Tensor gaussian_rows(int64_t count, int64_t width, uint64_t seed) {
  return at::randn({count, width}, at::detail::createCPUGenerator(seed), at::kFloat);
}

TEST(AddUp, IsAsIfOneProcessHadSeenAllBatches) {
  constexpr int kBatches = 7;
  // Batches reach different spaces, all of them among the first process's, and the fourth process has no batch at all.
  const auto add = [](int batch, std::map<int64_t, Moments>& moments) {
    const auto seed = static_cast<uint64_t>(batch);
    moments[1]["wide"].add(gaussian_rows(9, 4, seed), gaussian_rows(9, 6, seed + 100), kBothGrams);
    if (batch % 3 == 0) {
      moments[2]["seldom"].add(gaussian_rows(5, 3, seed), gaussian_rows(5, 3, seed + 100), {}, 2);
    }
  };
  std::map<int64_t, Moments> whole;
  for (int batch = 0; batch < kBatches; ++batch) {
    add(batch, whole);
  }
  PairMoments kept;
  const auto keep = [](int batch, PairMoments& moments) {
    const auto seed = static_cast<uint64_t>(batch);
    moments.keep(gaussian_rows(2 + batch, 4, seed), gaussian_rows(2 + batch, 3, seed + 100), 2);
  };
  for (const int batch : {0, 3, 6, 1, 4, 2, 5}) {  // as processes have them
    keep(batch, kept);
  }
  whole[3]["kept"] = kept;
  const auto errors = tests::run_together(4, [&](const cluster::Processes& processes) {
    std::map<int64_t, Moments> moments;
    for (int batch = processes.rank(); batch < kBatches && processes.rank() < 3; batch += 3) {
      add(batch, moments);
      keep(batch, moments[3]["kept"]);
    }
    add_up(processes, at::kCPU, moments);
    for (const auto& [stage, spaces] : whole) {
      ASSERT_EQ(moments.at(stage).size(), spaces.size());
      for (const auto& [space, expected] : spaces) {
        const auto& found = moments.at(stage).at(space);
        EXPECT_EQ(found.rows, expected.rows);
        EXPECT_EQ(found.distinct, expected.distinct);
        const auto left = found.tensors(), right = expected.tensors();
        ASSERT_EQ(left.size(), right.size());
        for (size_t i = 0; i < left.size(); ++i) {  // float64, some additions
          EXPECT_LE(tests::frobenius_error(left[i].second, right[i].second), 1e-15)
              << left[i].first;
        }
      }
    }
  });
  for (const auto& error : errors) {
    EXPECT_EQ(error, nullptr);
  }
}

}  // namespace
}  // namespace theseus::stats
