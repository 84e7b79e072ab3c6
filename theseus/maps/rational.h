#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// Z(x) = scale x (1 + sum_j weight_j / (x^2 + shift_j)) with Z(1) = 1 and Z([least, 1]) in [reached, 1]: of
// all such functions with that many terms the one for which `reached` is largest.
struct Zolotarev {
  double scale = 1;
  std::vector<double> weights;
  std::vector<double> shifts;
  double reached = 0;

  double operator()(double x) const;
};
Zolotarev zolotarev(double least, int64_t terms);

// The polar factor of C [m, n] float64, m <= n, in float32, for large C on a CPU.
struct RationalPolar {
  at::Tensor factor;  // [m, n] float32
  double condition = 0;
};

// Nothing when C is not of full rank, too ill-conditioned for a Gram matrix, or did not converge.
std::optional<RationalPolar> find_polar_by_rational(const at::Tensor& matrix);

}  // namespace theseus::maps
