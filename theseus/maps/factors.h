#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace theseus::maps {

// A map T [ds, dt] that is cheap to keep and to apply: T = B + L R^T, where B has ones on its diagonal or
// is zero. All tensors have one dtype and device.
struct Factors {
  bool identity = false;  // B has ones on its diagonal
  at::Tensor left;        // [ds, k]
  at::Tensor right;       // [dt, k]

  bool defined() const { return left.defined(); }
  int64_t source_width() const { return left.size(0); }
  int64_t target_width() const { return right.size(0); }
  int64_t count() const { return left.size(1); }  // k

  at::Tensor after(const at::Tensor& rows) const;       // X T [n, dt] for X [n, ds]
  at::Tensor before(const at::Tensor& columns) const;   // T Y [ds, n] for Y [dt, n]
  at::Tensor rows(int64_t begin, int64_t count) const;  // of T: [count, dt]
  at::Tensor dense() const;                             // [ds, dt]

  Factors transposed() const { return {identity, right, left}; }
  Factors to(at::ScalarType dtype) const;
  Factors to(c10::Device device) const;
};

// Ones on the diagonal [ds, dt].
Factors identity_factors(int64_t ds, int64_t dt, const at::TensorOptions& options);

// Whether k columns on each side are fewer numbers, and fewer operations to apply, than the matrix.
bool is_worthwhile(int64_t k, int64_t ds, int64_t dt);

}  // namespace theseus::maps
