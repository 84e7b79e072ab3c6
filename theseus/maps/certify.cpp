// Certificates of a polar factor that need no reference.
//
//   |A|_F^2 = E |A z|^2   for Gaussian z, so for large A a few products with vectors will do: with k
//   columns the estimate is within a factor 1 +- sqrt(2 / k) even for an A of rank one.

#include "theseus/maps/certify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/maps/row_gram.h"

namespace theseus::maps {
namespace {

constexpr int64_t kExact = 512;  // up to this size norms are computed, not estimated
constexpr int64_t kProbes = 16;
constexpr uint64_t kSeed = 20240229;

double frobenius(const at::Tensor& tensor) {
  return tensor.norm().item<double>();
}

bool is_exact(const at::Tensor& matrix) {
  return std::max(matrix.size(0), matrix.size(1)) <= kExact;
}

at::Tensor probes_for(const at::Tensor& rows) {
  return fixed_gaussian(rows.size(0), kProbes, rows.options()) / std::sqrt(kProbes);
}

}  // namespace

bool is_small(const at::Tensor& matrix) {
  return std::max(matrix.size(0), matrix.size(1)) <= kSmall;
}

at::Tensor fixed_gaussian(int64_t size, int64_t k, const at::TensorOptions& like) {
  const auto draw = [&] {
    const auto generator = at::detail::createCPUGenerator(kSeed);
    return at::randn({size, k}, generator, at::TensorOptions(at::kDouble));
  };
  if (k > kProbes) {
    return draw().to(like.device());
  }
  // The same few are asked for again and again, and drawing takes longer than their use on a GPU.
  static std::mutex mutex;
  static std::map<std::pair<int64_t, int64_t>, at::Tensor> drawn;
  const std::lock_guard lock(mutex);
  auto& found = drawn[{size, k}];
  if (!found.defined()) {
    found = draw();
  }
  return found.to(like.device(), at::kDouble, /*non_blocking=*/false, /*copy=*/true);
}

double orthogonality(const at::Tensor& map) {
  if (map.numel() == 0) {
    return 0;
  }
  if (map.size(0) > map.size(1)) {
    return orthogonality(map.t());
  }
  const auto t = map.to(at::kDouble);  // [m, n]
  const auto scale = std::sqrt(static_cast<double>(t.size(0)));
  if (is_exact(t)) {
    auto gram = row_gram(t);
    gram.diagonal().sub_(1);
    return frobenius(gram) / scale;
  }
  const auto z = probes_for(t);  // [m, k]
  return frobenius(t.matmul(t.t().matmul(z)) - z) / scale;
}

double orthogonality(const Factors& map) {
  const auto m = map.source_width(), n = map.target_width();
  if (m > n) {
    return orthogonality(map.transposed());
  }
  if (n <= kExact) {
    return orthogonality(map.dense());
  }
  const auto t = map.to(at::kDouble);
  const auto z = probes_for(t.left);  // [m, k]
  const auto back = t.before(t.after(z.t()).t());
  return frobenius(back - z) / std::sqrt(static_cast<double>(m));
}

double asymmetry(const at::Tensor& matrix, const at::Tensor& map) {
  if (map.numel() == 0) {
    return 0;
  }
  if (map.size(0) > map.size(1)) {
    return asymmetry(matrix.t(), map.t());
  }
  const auto& c = matrix;              // [m, n]
  const auto t = map.to(at::kDouble);  // [m, n]
  if (is_exact(t)) {
    const auto h = c.matmul(t.t());  // [m, m]
    const auto size = frobenius(h);
    return size > 0 ? frobenius(h - h.t()) / size : 0;
  }
  const auto z = probes_for(t);               // [m, k]
  const auto hz = c.matmul(t.t().matmul(z));  // H z
  const auto size = frobenius(hz);
  return size > 0 ? frobenius(hz - t.matmul(c.t().matmul(z))) / size : 0;
}

}  // namespace theseus::maps
