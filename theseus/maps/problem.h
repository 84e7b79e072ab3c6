#pragma once

#include <ATen/core/Tensor.h>

#include "theseus/maps/gram.h"
#include "theseus/maps/method.h"

namespace theseus::maps {

// What methods share. Each throws InputError when a tensor is missing or has another shape or dtype
// than `problem` says, NumericError when it holds a value that is not finite.

// C [ks, kt]; NumericError too when it is zero.
at::Tensor checked_cross(const Problem& problem);
at::Tensor checked_source_gram(const Problem& problem);  // [ks, ks]
at::Tensor checked_target_gram(const Problem& problem);  // [kt, kt]

// Both widths positive, bases and prior of the shapes they must have.
void check_widths(const Problem& problem);
// Widths are the same.
void check_same_widths(const Problem& problem, std::string_view method);

// Q_s X Q_t^T for X [ks, kt]: [ds, dt].
at::Tensor expand(const Problem& problem, const at::Tensor& core);

// Float32 and finite: what a Map holds.
at::Tensor as_map(const at::Tensor& matrix);

// Options of a float32 tensor where the problem's tensors are; the CPU when it has none.
at::TensorOptions map_options(const Problem& problem);

// Ones on the diagonal [ds, dt].
Map rectangular_identity(const Problem& problem);

// Q_s X Q_t^T for X [ks, kt] that came from `gram`: no isometry.
Map linear_map(const Problem& problem, const at::Tensor& core, const Spectrum& gram);

}  // namespace theseus::maps
