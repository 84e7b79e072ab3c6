#pragma once

#include <vector>

#include "theseus/checkpoint/write.h"
#include "theseus/model/model.h"

namespace theseus::output {

// What will be written for a model: every tensor of its checkpoint under its stored name and in its
// stored dtype.
struct ModelLayout {
  checkpoint::Layout files;
  std::vector<checkpoint::Entry> entries;

  int64_t bytes() const;  // of the tensors that are stored
};

// safetensors files keep their names, split and index. Others become safetensors under the name that
// the family's library looks for: model.safetensors, or open_clip_model.safetensors; shards are
// numbered. A tied tensor that was a second name for the same memory of a PyTorch file is not stored;
// one that was a copy is.
// Throws InputError for a dtype that libtorch does not have.
ModelLayout layout_of(const model::Model& target);

}  // namespace theseus::output
