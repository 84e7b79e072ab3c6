#include "theseus/maps/triangular.h"

#include <algorithm>
#include <tuple>

#include <ATen/ATen.h>

namespace theseus::maps {
namespace {

constexpr int64_t kBlock = 384;

}  // namespace

bool factor_in_place(at::Tensor matrix) {
  const auto m = matrix.size(0);
  for (int64_t begin = 0; begin < m; begin += kBlock) {
    const auto end = std::min(m, begin + kBlock);
    const auto before = matrix.slice(0, begin).slice(1, 0, begin);  // [m - begin, begin]
    auto panel = matrix.slice(0, begin).slice(1, begin, end);
    if (begin > 0) {
      panel.addmm_(before, before.slice(0, 0, end - begin).t(), 1, -1);
    }
    auto square = panel.slice(0, 0, end - begin);
    const auto [factor, failed] = at::linalg_cholesky_ex(square);
    if (failed.item<int>() != 0) {
      return false;
    }
    square.copy_(factor);
    if (end < m) {
      auto below = panel.slice(0, end - begin);
      below.copy_(at::linalg_solve_triangular(factor.t(), below, /*upper=*/true, /*left=*/false));
    }
  }
  return true;
}

void solve_lower_in_place(const at::Tensor& factor, at::Tensor right) {
  const auto m = factor.size(0);
  for (int64_t begin = 0; begin < m; begin += kBlock) {
    const auto end = std::min(m, begin + kBlock);
    auto some = right.slice(0, begin, end);
    const auto row = factor.slice(0, begin, end);
    if (begin > 0) {
      some.addmm_(row.slice(1, 0, begin), right.slice(0, 0, begin), 1, -1);
    }
    some.copy_(at::linalg_solve_triangular(row.slice(1, begin, end), some, /*upper=*/false));
  }
}

void solve_upper_in_place(const at::Tensor& factor, at::Tensor right) {
  const auto m = factor.size(0);
  for (auto end = m; end > 0;) {
    const auto begin = (end - 1) / kBlock * kBlock;
    auto some = right.slice(0, begin, end);
    const auto column = factor.slice(1, begin, end);
    if (end < m) {
      some.addmm_(column.slice(0, end).t(), right.slice(0, end), 1, -1);
    }
    some.copy_(at::linalg_solve_triangular(column.slice(0, begin, end).t(), some, /*upper=*/true));
    end = begin;
  }
}

}  // namespace theseus::maps
