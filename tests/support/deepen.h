#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "theseus/model/model.h"

namespace theseus::tests {

// A block as shares of a tower's own ones.
using BlockParts = std::vector<std::pair<int64_t, double>>;

// Writes the model of `from` with `blocks` blocks in every tower to the directory `to`: block i of a
// tower is the sum of the shares that `parts` gives.
void restack(
    const std::filesystem::path& from,
    const std::filesystem::path& to,
    int64_t blocks,
    const std::function<BlockParts(const model::Tower& tower, int64_t i)>& parts);

// Block i is a copy of block i of `from`, or, past its last one, of block i modulo its depth with
// noise of relative size 0.3.
void deepen(
    const std::filesystem::path& from,
    const std::filesystem::path& to,
    int64_t blocks,
    uint64_t seed = 1);

}  // namespace theseus::tests
