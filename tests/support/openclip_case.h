#pragma once

#include <filesystem>

#include "theseus/model/pass.h"

#include "tests/support/scratch_dir.h"

namespace theseus::tests {

// The Hugging Face CLIP of case clip_legacy_end, rewritten as an OpenCLIP checkpoint: same weights,
// other names, q, k and v fused, projections transposed. So the two families must agree.
class OpenClipCase {
 public:
  OpenClipCase();
  const std::filesystem::path& path() const { return directory_.path(); }
  model::Batch inputs() const;  // pixel_values, text

 private:
  ScratchDir directory_;
};

}  // namespace theseus::tests
