#pragma once

#include <ATen/core/Tensor.h>

#include "theseus/maps/method.h"
#include "theseus/maps/polar.h"

namespace theseus::maps {

// The isometry nearest to a matrix that is given in the problem's bases, X [ks, kt] float64: the
// polar factor of Q_s X Q_t^T with what it leaves open treated as `rank` says. Throws NumericError
// when X is zero, or the map is not an isometry to 1e-6.
Map isometry_near(const Problem& problem, const at::Tensor& core, Rank rank);

// Likewise from a polar factor that is known already, in the problem's bases; kArbitrary is for
// isometry_near alone and taken as kComplete here, as it is for a problem that wants factors.
Map isometry_from(const Problem& problem, const Polar& polar, Rank rank);

}  // namespace theseus::maps
