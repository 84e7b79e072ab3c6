#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace theseus::cli {

// Whether `out` can be written at all: its directory is there and writable, and it is no device.
// Throws InputError, like the next: before hours of work, not after. What a killed process left on the way to `out` is
// removed.
void check_writable(const std::string& out);

// Whether writing `out` would leave `needed` files alone, and the directories of models and adapters
// as they are: no other file than a safetensors file is replaced there, and none appears under a name
// that tools take for weights. Empty paths are passed over.
void check_nothing_lost(
    const std::string& out,
    const std::vector<std::filesystem::path>& needed,
    const std::vector<std::filesystem::path>& model_directories);

}  // namespace theseus::cli
