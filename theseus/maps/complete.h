#pragma once

#include <ATen/core/Tensor.h>

#include "theseus/maps/factors.h"

namespace theseus::maps {

// The partial isometry L R^T extended to a full one: on the complements of L and R it is the polar
// factor of `prior` [ds, dt] there; directions that the prior leaves open too get that of the
// rectangular identity, and what even this leaves open that of a fixed random matrix.
// L [ds, r] and R [dt, r] have orthonormal columns, r < min(ds, dt). A prior that is no isometry is
// replaced by the nearest; undefined: the rectangular identity.
// [ds, dt] in dtype_of_map().
at::Tensor complete(const at::Tensor& left, const at::Tensor& right, const at::Tensor& prior);

// The same map as factors, float64, without a matrix [ds, dt] anywhere: 2 r columns and those of the
// prior, which is an isometry to 1e-5 or undefined.
Factors complete_factors(const at::Tensor& left, const at::Tensor& right, const Factors& prior);

}  // namespace theseus::maps
