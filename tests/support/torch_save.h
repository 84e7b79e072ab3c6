#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::tests {

// A state dict as torch.save writes it: tensors that share memory share a storage in the file.
void torch_save(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors);

}  // namespace theseus::tests
