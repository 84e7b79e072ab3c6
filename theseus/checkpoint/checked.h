#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/checkpoint/checkpoint.h"

namespace theseus::checkpoint {

// Files of unfinished work: safetensors whose content is checked when a job goes on from it, since a
// damaged byte would otherwise become a wrong model.

// Writes the tensors and a checksum of their names, dtypes, shapes and bytes. The file appears whole or not at all;
// not `synced`: without waiting for the disk (see write_safetensors). Returns the checksum.
std::string write_checked(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    bool synced = true);

// Opens such a file; the checksum is not among its tensors. Reads everything, once in a process for a file that has not
// changed since. Throws InputError, which names the file and --fresh, when it is not there or not as it was written,
// or has another checksum than `expected`, where that is given.
Checkpoint open_checked(const std::filesystem::path& path, const std::string& expected = "");

}  // namespace theseus::checkpoint
