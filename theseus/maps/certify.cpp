// Certificates of a polar factor that need no reference.
//
//   |A|_F^2 = E |A z|^2   for Gaussian z, so for large A a few products with vectors will do: with k
//   columns the estimate is within a factor 1 +- sqrt(2 / k) even for an A of rank one.

#include "theseus/maps/certify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/base/device.h"
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

// Of a map that may be float32: in float64, some rows at a time, as a copy of all of them is large.
int64_t rows_at_a_time(const at::Tensor& map) {
  return map.device().is_cpu() ? 256 : 4096;
}

// T y [m, k]
at::Tensor through(const at::Tensor& map, const at::Tensor& y) {
  std::vector<at::Tensor> parts;
  for (const auto& rows : map.split(rows_at_a_time(map))) {
    parts.push_back(times_few(rows.to(at::kDouble), y));
  }
  return at::cat(parts);
}

// T^T z [n, k]
at::Tensor back_through(const at::Tensor& map, const at::Tensor& z) {
  auto sum = at::zeros({map.size(1), z.size(1)}, z.options());
  const auto some = rows_at_a_time(map);
  for (int64_t row = 0; row < map.size(0); row += some) {
    const auto count = std::min(some, map.size(0) - row);
    const auto rows = map.narrow(0, row, count).to(at::kDouble);
    sum.add_(times_few(rows.t(), z.narrow(0, row, count)));
  }
  return sum;
}

}  // namespace

bool is_small(const at::Tensor& matrix) {
  return std::max(matrix.size(0), matrix.size(1)) <= kSmall;
}

at::ScalarType dtype_of_map(int64_t ds, int64_t dt, c10::Device device) {
  return std::max(ds, dt) <= kSmall ? at::kDouble : dtype_of_products(device);
}

at::Tensor fixed_gaussian(int64_t size, int64_t k, const at::TensorOptions& like) {
  const auto draw = [&] {
    const auto generator = at::detail::createCPUGenerator(kSeed);
    return at::randn({size, k}, generator, at::TensorOptions(at::kDouble));
  };
  if (k > kProbes) {
    return draw().to(like.device());
  }
  // The same few are asked for again and again, by threads that must not wait for each other's copies to a GPU.
  static std::mutex mutex;
  static std::map<std::tuple<int64_t, int64_t, std::string>, at::Tensor> drawn;
  const std::lock_guard lock(mutex);
  auto& found = drawn[{size, k, like.device().str()}];
  if (!found.defined()) {
    found = draw().to(like.device());
  }
  return found;
}

double orthogonality(const at::Tensor& map) {
  if (map.numel() == 0) {
    return 0;
  }
  if (map.size(0) > map.size(1)) {
    return orthogonality(map.t());
  }
  const auto scale = std::sqrt(static_cast<double>(map.size(0)));  // [m, n]
  if (is_exact(map)) {
    auto gram = row_gram(map.to(at::kDouble));
    gram.diagonal().sub_(1);
    return frobenius(gram) / scale;
  }
  const auto z = probes_for(map);  // [m, k]
  return frobenius(through(map, back_through(map, z)) - z) / scale;
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
  const auto& c = matrix;  // [m, n]
  if (is_exact(map)) {
    const auto h = c.matmul(map.to(at::kDouble).t());  // [m, m]
    const auto size = frobenius(h);
    return size > 0 ? frobenius(h - h.t()) / size : 0;
  }
  const auto z = probes_for(map);                      // [m, k]
  const auto hz = times_few(c, back_through(map, z));  // H z
  const auto size = frobenius(hz);
  return size > 0 ? frobenius(hz - through(map, times_few(c.t(), z))) / size : 0;
}

}  // namespace theseus::maps
