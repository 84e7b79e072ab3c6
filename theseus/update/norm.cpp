#include "theseus/update/norm.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

namespace theseus::update {

double norm_of(const at::Tensor& tensor) {
  constexpr int64_t kAtATime = 1 << 22;
  const auto all = tensor.reshape({-1});
  double sum = 0;
  for (int64_t first = 0; first < all.size(0); first += kAtATime) {
    const auto count = std::min(kAtATime, all.size(0) - first);
    sum += all.narrow(0, first, count).to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

}  // namespace theseus::update
