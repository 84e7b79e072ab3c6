// Certificates of a polar factor that need no reference.
//
//   |A|_F^2 = E |A z|^2   for Gaussian z, so for large A a few products with vectors will do: with k
//   columns the estimate is within a factor 1 +- sqrt(2 / k) even for an A of rank one.

#include "theseus/maps/certify.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace theseus::maps {
namespace {

constexpr int64_t kProbes = 16;
constexpr uint64_t kSeed = 20240229;

// |A| where apply(Z) = A Z, or exactly for Z = I.
template <class Apply>
double frobenius(const at::Tensor& probes, Apply&& apply) {
  const bool exact = probes.size(0) == probes.size(1);
  return apply(probes).norm().template item<double>() /
         (exact ? 1 : std::sqrt(static_cast<double>(probes.size(1))));
}

at::Tensor probes_for(const at::Tensor& map) {
  const auto m = map.size(0);
  const auto options = map.options().dtype(at::kDouble);
  return is_small(map) ? at::eye(m, options) : fixed_gaussian(m, kProbes, options);
}

}  // namespace

bool is_small(const at::Tensor& matrix) {
  return std::max(matrix.size(0), matrix.size(1)) <= kSmall;
}

at::Tensor fixed_gaussian(int64_t size, int64_t k, const at::TensorOptions& like) {
  const auto generator = at::detail::createCPUGenerator(kSeed);
  return at::randn({size, k}, generator, at::TensorOptions(at::kDouble)).to(like.device());
}

double orthogonality(const at::Tensor& map) {
  if (map.numel() == 0) {
    return 0;
  }
  if (map.size(0) > map.size(1)) {
    return orthogonality(map.t());
  }
  const auto t = map.to(at::kDouble);  // [m, n]
  const auto error =
      frobenius(probes_for(t), [&](const at::Tensor& z) { return t.matmul(t.t().matmul(z)) - z; });
  return error / std::sqrt(static_cast<double>(t.size(0)));
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
  const auto probes = probes_for(t);
  const auto apply = [&](const at::Tensor& z) { return c.matmul(t.t().matmul(z)); };
  const auto error =
      frobenius(probes, [&](const at::Tensor& z) { return apply(z) - t.matmul(c.t().matmul(z)); });
  const auto size = frobenius(probes, apply);
  return size > 0 ? error / size : 0;
}

}  // namespace theseus::maps
