#include "theseus/maps/completion.h"

#include <tuple>

#include <ATen/ATen.h>

namespace theseus::maps {

at::Tensor complement(const at::Tensor& basis) {
  const auto q = basis.size(0);
  const auto [lambda, vectors] = at::linalg_eigh(basis.matmul(basis.t()));
  return vectors.slice(1, 0, q - basis.size(1));
}

at::Tensor best_spanned(const at::Tensor& drawn) {
  const auto [lambda, w] = at::linalg_eigh(drawn.t().matmul(drawn));  // ascending
  return drawn.matmul(w.slice(1, kSpare)) / lambda.slice(0, kSpare).sqrt();
}

}  // namespace theseus::maps
