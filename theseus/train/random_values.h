#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::train {

// The same numbers on every machine and with every libtorch; `stream` tells apart what one seed is used for.
at::Tensor random_normal(at::IntArrayRef shape, double deviation, uint64_t seed, uint64_t stream);
at::Tensor random_uniform(at::IntArrayRef shape, double bound, uint64_t seed, uint64_t stream);

}  // namespace theseus::train
