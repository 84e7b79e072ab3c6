#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "theseus/maps/halley.h"

namespace theseus::maps {

// The polar factor of C [m, n] float64, m <= n, of full rank; the factor is float32. It errs less
// than by rounding C to float32. Nothing where C is of lower rank or, less a few values that stand out, of a
// condition above 1e4, and where a direction in which C is small does not arrive where C sends it: a
// decomposition has to tell. Takes some three quarters of the time of one.
std::optional<Halley> find_polar_by_mixed_halley(const at::Tensor& matrix);

}  // namespace theseus::maps
