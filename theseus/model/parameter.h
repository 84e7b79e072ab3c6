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

// The path with its first whole number, the index of a block, replaced by '*': equal for the same
// place in every block. "visual.3.attn_in" -> "visual.*.attn_in". Paths without a number stay.
std::string role_of(const std::string& path);
// The path with `block` in place of that number.
std::string in_block(const std::string& path, int64_t block);

// Whether the path has such a number, so that what it names belongs to a block.
inline bool is_in_block(const std::string& path) {
  return role_of(path) != path;
}
// "visual.3.attn_in" -> "visual": the tower that a space belongs to.
inline std::string tower_of_space(const std::string& space) {
  return space.substr(0, space.find('.'));
}

// What a parameter does. Tables are everything that is neither a linear layer nor a norm: embeddings,
// positions, scales.
enum class Role { kTable, kWeight, kBias, kGain, kShift };

// One weight as the method sees it: a tensor of the checkpoint, or some rows of a fused one.
struct Parameter {
  std::string name;    // the library's own name; a part of a fused tensor ends in "#q", "#k", "#v"
  std::string tensor;  // the library's own name of the tensor that holds it
  std::string stored;  // that tensor's name in this checkpoint
  int64_t row = 0;     // where the part begins on axis 0 of the tensor
  std::vector<int64_t> shape;
  std::vector<std::string> axes;  // the space of each axis, as many as shape
  int64_t block = kOuter;
  Role role = Role::kTable;

  bool fused() const { return name != tensor; }
};

// A linear layer y = x W^T + b, by the name under which Taps see it. Its output may be several spaces
// side by side (fused q, k and v).
struct Linear {
  std::string module;
  std::string weight;            // tensor [out, in]
  std::string bias;              // tensor [out], or empty
  bool transposed = false;       // the weight is stored [in, out]
  std::string in;                // what it reads; of a pooled space the weight's axis is the whole
  std::vector<std::string> out;  // in order of rows
  int64_t block = kOuter;
};

// A norm, by the name under which Taps see it.
struct Norm {
  std::string module;
  std::string in;
  std::string out;
  int64_t block = kOuter;
};

// What is known of a space besides its name.
struct Space {
  int64_t width = 0;
  int64_t heads = 0;         // its units come in so many heads; 0: they do not
  bool rigid_heads = false;  // units of a head have their own meaning (rotary positions)
  // The layer norm, by its module, that writes it: its rows about their mean miss one direction.
  std::string norm;
  // A space with the same units, more of whose directions are used: behind the activation function.
  std::string behind;
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
  int64_t positions = 0;  // longest input in tokens, of the weights or the config; 0: no bound
  int64_t image = 0;      // pixels a side
  int64_t patch = 0;

  int64_t grid() const { return image > 0 ? image / patch : 0; }  // patches a side; 0: no images
};

// Two names for one tensor: `name` is not stored, or stored as an exact copy of `tied_to`.
struct Tie {
  std::string name;
  std::string tied_to;
  std::string stored;  // the copy's name in this checkpoint, or empty
};

}  // namespace theseus::model
