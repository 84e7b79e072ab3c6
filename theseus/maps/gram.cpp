#include "theseus/maps/gram.h"

#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::maps {
namespace {

at::Tensor congruence(const at::Tensor& vectors, const at::Tensor& values) {
  return (vectors * values).matmul(vectors.t());
}

}  // namespace

double Spectrum::condition() const {
  return (values[0] / values[-1]).item<double>();
}

at::Tensor Spectrum::power(double p) const {
  return congruence(vectors, values.pow(p));
}

at::Tensor Spectrum::ridge_inverse(double lambda) const {
  return congruence(vectors, (values + lambda).reciprocal());
}

Spectrum spectrum(const at::Tensor& gram) {
  const auto [ascending, vectors] = at::linalg_eigh((gram + gram.t()) / 2);
  const auto values = ascending.flip(0);
  const auto largest = values[0].item<double>();
  require<NumericError>(largest > 0, "a Gram matrix ", gram.sizes(), " is zero");
  const auto least = values[-1].item<double>();
  require<NumericError>(
      least >= -kEigenvalueCut * largest, "a Gram matrix ", gram.sizes(), " has the eigenvalue ",
      least, "; its largest is ", largest);
  const auto rank = (values > kEigenvalueCut * largest).sum().item<int64_t>();
  return {values.slice(0, 0, rank), vectors.flip(1).slice(1, 0, rank).contiguous()};
}

}  // namespace theseus::maps
