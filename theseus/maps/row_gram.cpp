#include "theseus/maps/row_gram.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace theseus::maps {
namespace {

// Rows of a block: large enough for a product at full speed.
int64_t block_of(const at::Tensor& rows) {
  return rows.device().is_cpu() ? 384 : 1024;
}

}  // namespace

at::Tensor row_gram(const at::Tensor& rows) {
  return symmetric_product(rows, rows);
}

at::Tensor symmetric_product(const at::Tensor& left, const at::Tensor& right) {
  const auto m = left.size(0);
  auto gram = at::empty({m, m}, left.options());
  const auto block = block_of(left);
  for (int64_t begin = 0; begin < m; begin += block) {
    const auto end = std::min(m, begin + block);
    auto row = gram.slice(0, begin, end).slice(1, begin);  // from the diagonal on
    at::matmul_out(row, left.slice(0, begin, end), right.slice(0, begin).t());
    auto square = row.slice(1, 0, end - begin);
    square.copy_((square + square.t()) / 2);
    auto below = gram.slice(0, end).slice(1, begin, end);
    below.copy_(row.slice(1, end - begin).t());
  }
  return gram;
}

at::Tensor times_few(const at::Tensor& matrix, const at::Tensor& columns) {
  return columns.t().contiguous().matmul(matrix.t()).t();
}

at::Tensor newton_schulz(const at::Tensor& rows) {
  return 1.5 * rows - 0.5 * row_gram(rows).matmul(rows);
}

}  // namespace theseus::maps
