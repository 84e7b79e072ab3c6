#pragma once

#include <string>
#include <string_view>

#include "theseus/base/content_hash.h"
#include "theseus/checkpoint/checkpoint.h"

namespace theseus::checkpoint {

// "xxh3:" and 32 hexadecimal digits of every tensor's name, dtype, shape and bytes, in the order of
// names: the same for the same tensors however they are split into files. Reads everything,
// once in a process for files that have not changed since.
std::string fingerprint(const Checkpoint& checkpoint);

// Adds one of these tensors, which is on the CPU and contiguous. `dtype`: safetensors' word.
void add_tensor(
    ContentHash& hash, const std::string& name, std::string_view dtype, const at::Tensor& tensor);

}  // namespace theseus::checkpoint
