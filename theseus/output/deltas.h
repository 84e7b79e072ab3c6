#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::output {

// Delta of one of the target's tensors by its library's own name (Parameter::tensor): float32, of the
// whole tensor's shape, on any device. Undefined: the tensor stays as it is. Called once per tensor,
// in the order of writing.
using Deltas = std::function<at::Tensor(const std::string& tensor)>;

// Told how many bytes of how many are written, before each tensor and at the end. May be empty.
using Watch = std::function<void(int64_t done, int64_t all)>;

}  // namespace theseus::output
