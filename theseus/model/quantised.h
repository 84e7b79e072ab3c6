#pragma once

#include <filesystem>

#include "theseus/checkpoint/checkpoint.h"

namespace theseus::model {

// Throws InputError, with who packed it, when a model's weights are quantised: by bitsandbytes, GPTQ, AWQ, to FP8 or in
// another way that its config (which may be missing) or its tensors betray.
void refuse_quantised(
    const std::filesystem::path& config, const checkpoint::Checkpoint& checkpoint);

}  // namespace theseus::model
