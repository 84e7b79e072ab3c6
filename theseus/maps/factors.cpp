#include "theseus/maps/factors.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace theseus::maps {
namespace {

// X B for the B [columns of X, width] with ones on its diagonal: cut, or zeros behind.
at::Tensor fitted(const at::Tensor& rows, int64_t width) {
  const auto have = rows.size(1);
  return have >= width ? rows.narrow(1, 0, width) : at::constant_pad_nd(rows, {0, width - have}, 0);
}

}  // namespace

at::Tensor Factors::after(const at::Tensor& rows) const {
  const auto inner = at::mm(rows, left);  // [n, k]
  return identity ? at::addmm(fitted(rows, target_width()), inner, right.t())
                  : at::mm(inner, right.t());
}

at::Tensor Factors::before(const at::Tensor& columns) const {
  return transposed().after(columns.t()).t();
}

at::Tensor Factors::rows(int64_t begin, int64_t count) const {
  auto result = at::mm(left.narrow(0, begin, count), right.t());
  const auto ones = std::clamp<int64_t>(target_width() - begin, 0, count);
  if (identity && ones > 0) {
    result.narrow(0, 0, ones).narrow(1, begin, ones).diagonal().add_(1);
  }
  return result;
}

at::Tensor Factors::dense() const {
  return rows(0, source_width());
}

Factors Factors::to(at::ScalarType dtype) const {
  return {identity, left.to(dtype).contiguous(), right.to(dtype).contiguous()};
}

Factors Factors::to(c10::Device device) const {
  return {identity, left.to(device), right.to(device)};
}

Factors identity_factors(int64_t ds, int64_t dt, const at::TensorOptions& options) {
  return {true, at::zeros({ds, 0}, options), at::zeros({dt, 0}, options)};
}

bool is_worthwhile(int64_t k, int64_t ds, int64_t dt) {
  return k * (ds + dt) < ds * dt;
}

}  // namespace theseus::maps
