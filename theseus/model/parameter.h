#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace theseus::model {

// Every axis of every parameter lives in a space. A space that activations pass through has a path
// such as "visual.3.mlp_in": its rows can be observed and mapped. Other axes (vocabulary, positions,
// channels, kernel) are fixed: their names stand in angle brackets, as in "<vocab>".
inline bool is_fixed(const std::string& space) {
  return !space.empty() && space.front() == '<';
}

constexpr int64_t kOuter =
    -1;  // Parameter::block of what no block owns: embeddings, last norm, head

// One weight as the method sees it: a tensor of the checkpoint, or some rows of a fused one.
struct Parameter {
  std::string name;    // the library's own name; a part of a fused tensor ends in "#q", "#k", "#v"
  std::string tensor;  // the library's own name of the tensor that holds it
  std::string stored;  // that tensor's name in this checkpoint
  int64_t row = 0;     // where the part begins on axis 0 of the tensor
  std::vector<int64_t> shape;
  std::vector<std::string> axes;  // the space of each axis, as many as shape
  int64_t block = kOuter;

  bool fused() const { return name != tensor; }
};

// One stack of blocks with a residual stream of its own. 0 where a size does not apply.
struct Tower {
  std::string name;  // "visual", "text", "encoder", "decoder"
  int64_t blocks = 0;
  int64_t width = 0;
  int64_t heads = 0;
  int64_t key_value_heads = 0;
  int64_t head_dim = 0;
  int64_t mlp = 0;
  int64_t vocabulary = 0;
  int64_t positions = 0;  // longest input in tokens; 0: not bounded by the weights
  int64_t image = 0;      // pixels a side
  int64_t patch = 0;
};

// Two names for one tensor: `name` is not stored, or stored as an exact copy of `tied_to`.
struct Tie {
  std::string name;
  std::string tied_to;
  std::string stored;  // the copy's name in this checkpoint, or empty
};

}  // namespace theseus::model
