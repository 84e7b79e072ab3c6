#pragma once

#include <cstdint>
#include <filesystem>

#include <c10/core/ScalarType.h>

#include "theseus/model/locate.h"

namespace theseus::model {

// What a model takes on a device that keeps all of it: so many bytes a weight, however its files store them. Reads
// headers. 0 where they cannot be read, which whoever opens the model will say.
int64_t room_for(
    const std::filesystem::path& path, int64_t bytes_a_weight, const OpenOptions& options = {});

// Of a model that runs in `dtype`.
int64_t room_for(
    const std::filesystem::path& path, c10::ScalarType dtype, const OpenOptions& options = {});

}  // namespace theseus::model
