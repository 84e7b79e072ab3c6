#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::output {

// base + alpha * delta as it is stored, and what storing it cost.
struct Sum {
  at::Tensor value;         // in the dtype of the base
  double norm_squared = 0;  // |alpha delta|^2
  double lost_squared = 0;  // |alpha delta - (value - base)|^2
  bool finite = true;
};

// One pass over both, without a float32 copy of the base. `base` is on the CPU, `delta` has its shape.
// Where alpha * delta is zero the base's bits stay. The same for every number of threads.
// Throws InputError unless the base is float16, bfloat16, float32 or float64.
Sum add_delta(const at::Tensor& base, const at::Tensor& delta, double alpha);

}  // namespace theseus::output
