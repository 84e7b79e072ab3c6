#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "theseus/maps/factors.h"

namespace theseus::maps {

// Up to this many rows and columns everything is float64; above, a map may be computed in float32,
// which is what it ends up as.
constexpr int64_t kSmall = 1024;

bool is_small(const at::Tensor& matrix);

// What a map [ds, dt] is computed in: float64 when it is small or where that is as fast, else float32.
at::ScalarType dtype_of_map(int64_t ds, int64_t dt, c10::Device device);

// k fixed Gaussian columns [size, k] float64: the same on every run and device. Not to be written to.
at::Tensor fixed_gaussian(int64_t size, int64_t k, const at::TensorOptions& like);

// Both are estimated with a few fixed random vectors where the matrix is wider than 512.

// |T T^T - I| over sqrt(m) for T [m, n] with m <= n, otherwise of T^T. Any real dtype; 0 when empty.
double orthogonality(const at::Tensor& map);
double orthogonality(const Factors& map);

// |H - H^T| / |H| with H = C T^T for m <= n, C^T T otherwise. C [m, n] float64, T [m, n].
double asymmetry(const at::Tensor& matrix, const at::Tensor& map);

}  // namespace theseus::maps
