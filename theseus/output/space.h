#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "theseus/model/model.h"
#include "theseus/output/output_dtype.h"

namespace theseus::output {

// Throws InputError, with both numbers, when the disk of `directory` (or of its nearest parent that
// exists) has less than `bytes` left for `what`.
void require_space(const std::filesystem::path& directory, int64_t bytes, std::string_view what);

// What a merged model of this target takes on disk: weights with their headers, index, side files. Of kAuto, which
// decides later, the most.
int64_t bytes_of_output(const model::Model& target, OutputDtype dtype = OutputDtype::kTarget);

}  // namespace theseus::output
