#pragma once

#include <ATen/core/Tensor.h>

namespace theseus {

// The tensor on `device`, copied whether it was there or not. Between a GPU and the host it goes through
// pinned memory, some megabytes at a time, so that a file's pages are read while others are on their way.
at::Tensor bring(const at::Tensor& tensor, c10::Device device);

}  // namespace theseus
