#pragma once

#include <ATen/core/Tensor.h>

namespace theseus::output {

// What adding an update to tensors did, of one or of several together.
struct Addition {
  double norm_squared = 0;     // |alpha delta|^2
  double lost_squared = 0;     // |alpha delta - (value - base)|^2
  double arrived_squared = 0;  // |value - base|^2
  double base_squared = 0;     // |base|^2

  void add(const Addition& other);
  double lost() const;  // the share of the update's square that is lost
};

// base + alpha * delta as it is stored, and what storing it cost.
struct Sum {
  at::Tensor value;
  Addition addition;
  bool finite = true;
};

// One pass over both, without a float32 copy of the base where `stored` is its dtype. `base` is on the CPU, `delta`
// has its shape. Where alpha * delta is zero the base's bits stay, or are rounded to `stored`. The same for
// every number of threads. Throws InputError unless both dtypes are of float16, bfloat16, float32 and float64, and
// float64 is that of both or of none.
Sum add_delta(const at::Tensor& base, const at::Tensor& delta, double alpha, at::ScalarType stored);
// Stored in the base's own dtype.
Sum add_delta(const at::Tensor& base, const at::Tensor& delta, double alpha);

}  // namespace theseus::output
