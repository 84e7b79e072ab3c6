#include "theseus/maps/assignment.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/maps/random_matrix.h"

namespace theseus::maps {
namespace {

double value(const at::Tensor& score, const at::Tensor& column) {
  return score.gather(1, column.unsqueeze(1)).sum().item<double>();
}

TEST(Assignment, IsAsGoodAsTryingAll) {
  for (int64_t n = 1; n <= 6; ++n) {
    const auto score = tests::gaussian(n, n, static_cast<uint64_t>(n));
    std::vector<int64_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    double best = value(score, at::tensor(order));
    while (std::next_permutation(order.begin(), order.end())) {
      best = std::max(best, value(score, at::tensor(order)));
    }
    EXPECT_NEAR(value(score, assign(score)), best, 1e-12) << n;
  }
}

TEST(Assignment, IsAPermutationAlsoAmongTies) {
  const auto column = assign(at::zeros({30, 30}, at::kDouble));
  EXPECT_TRUE(at::equal(std::get<0>(column.sort()), at::arange(30)));
}

}  // namespace
}  // namespace theseus::maps
