#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/output/deltas.h"

namespace theseus::output {

constexpr const char* kUpdateFile = "update.safetensors";

// One tensor of an update: what is known of it before it is computed.
struct UpdateEntry {
  std::string tensor;
  std::vector<int64_t> shape;
};

// Writes the deltas, unscaled and in float32, under the target's own tensor names into
// `directory`/update.safetensors, one at a time. The file appears whole or not at all.
// Throws InternalError when a delta is missing or has another shape or dtype, NumericError naming one
// that is not finite.
void write_update(
    const std::filesystem::path& directory,
    const std::vector<UpdateEntry>& entries,
    const Deltas& deltas,
    const Watch& watch = {});

}  // namespace theseus::output
