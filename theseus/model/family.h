#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "theseus/base/json.h"
#include "theseus/base/plugin.h"
#include "theseus/model/declare.h"
#include "theseus/model/parameter.h"
#include "theseus/model/pass.h"

namespace theseus::model {

// The computation of one model, in blocks. Holds sizes, never weights.
class Network {
 public:
  virtual ~Network() = default;
  // Checks the inputs and fills pass.streams.
  virtual void enter(Pass& pass) const = 0;
  // Block `i` of all the towers' blocks counted through, in order of the towers.
  virtual void block(int64_t i, Pass& pass) const = 0;
  // Fills pass.outputs.
  virtual void leave(Pass& pass) const = 0;
};

// How a model writes text by itself; `possible` is false for models that do not.
struct Generation {
  bool possible = false;
  std::string grows;           // the input that new tokens are appended to
  std::vector<int64_t> end;    // end-of-sequence ids; empty: never ends
  int64_t pad = 0;             // fills rows that have ended
  std::string refused;         // a setting that changes what is generated and is not implemented
  std::vector<int64_t> start;  // decoder start token, when the model begins a sequence of its own
};

// Architecture::head_task of an encoder without a pooler: PEFT's word for what its adapters are for. They bring
// no head; one lies beside the encoder, and reads the mean of a text's tokens (output/sentence_head.h).
constexpr const char* kBareEncoder = "FEATURE_EXTRACTION";

// What a family makes of one config and one checkpoint's headers.
struct Architecture {
  std::string variant;  // the config's own word: model_type or architecture
  std::vector<Tower> towers;
  std::vector<std::string> inputs;  // names of Batch that it takes
  std::vector<Parameter> parameters;
  std::vector<Linear> linears;
  std::vector<Norm> norms;
  std::map<std::string, Space> spaces;  // those that are not fixed
  std::vector<Tie> ties;
  std::vector<std::string> not_run;
  Generation generation;
  std::unique_ptr<const Network> network;
  // "bert.": before the encoder's names in a model with a head, and perhaps not in the bare one.
  std::string prefix;
  // "classifier": a linear head on `head_width` that this checkpoint lacks and that an adapter for
  // `head_task` may bring among its modules_to_save. Empty: none.
  std::string head;
  std::string head_task;
  int64_t head_width = 0;
  // Where in `parameters` a role is, by block.
  std::map<std::pair<int64_t, std::string>, size_t> places;
  // Other spellings of a tensor's name, for checkpoints and adapters; may be null.
  std::vector<std::string> (*aliases)(const std::string& tensor) = nullptr;

  int64_t blocks() const;
  // The tower of a block, and the number of its first block.
  std::pair<const Tower*, int64_t> tower_of(int64_t block) const;
  // A name without `prefix` and, in a block, with '*' for the block's number: the same for models of
  // one family that differ in depth or in the head around them.
  std::string role(const std::string& name, int64_t block) const;
  // The parameter of that role in `block`, or null.
  const Parameter* find_parameter(const std::string& role, int64_t block) const;
  // Takes over what the family declared, after the check that nothing else is there. `prefix` must be
  // set before.
  void adopt(Declaration&& declaration);
};

// Whether `name` is among the inputs of an architecture.
bool takes(const std::vector<std::string>& inputs, std::string_view name);

// A model family: one file in model/families/.
struct Family {
  std::string_view config_file;  // "config.json"
  std::string_view key;  // the field of it that tells the family; empty: the file's name does
  std::vector<std::string_view>
      values;                        // what that field may be; a '*' at the end matches any rest
  std::vector<std::string> weights;  // weights files tried first
  Architecture (*open)(const Json& config, const checkpoint::Checkpoint& checkpoint);
};

// Every family in this build, sorted by name.
std::span<const Plugin<Family>> all_families();

// Checks of inputs that several families share; all throw InputError and wait for the device.
// ids [n, t], integers in [0, vocabulary); t at most `positions` unless that is 0.
at::Tensor checked_ids(
    const Pass& pass, const std::string& name, int64_t vocabulary, int64_t positions);
// mask of zeros and ones of that shape, or undefined when not given.
at::Tensor checked_mask(const Pass& pass, const std::string& name, at::IntArrayRef shape);
// images [n, 3, size, size], finite.
at::Tensor checked_images(const Pass& pass, int64_t size);

// The spaces of one block with one attention and one MLP. `q` has heads * head_dim, `k` and `v`
// key_value_heads * head_dim.
struct BlockSpaces {
  BlockSpaces(const Tower& tower, int64_t block);
  using Side = Declaration::Side;
  Side attn_in, q, k, v, attn_mix, attn_out, mlp_in, mlp_up, mlp_mid, mlp_out;
};

// Class token and patches of a vision tower. Throws InputError when no patch fits the image.
int64_t tokens_of(const Tower& tower);

// Checks on configs. All throw InputError with the place.
// A positive integer that is at most 2^31.
int64_t size_of(const Json& config, std::string_view key);
int64_t size_of(const Json& config, std::string_view key, int64_t fallback);
// `width` times the number at `key`, rounded down.
int64_t scaled_size(int64_t width, const Json& config, std::string_view key, double fallback);
// `key` must be absent or null, or equal to `only` (as JSON text).
void refuse_unless(const Json& config, std::string_view key, std::string_view only);
// Every key outside `known` must be absent, null, false or an empty object: for configs in which
// every key matters.
void refuse_others(const Json& config, std::initializer_list<std::string_view> known);
// A size, or two equal ones as [height, width].
int64_t square_of(const Json& config, std::string_view key, int64_t fallback);
// How many classes a Hugging Face config says: id2label, num_labels, or 2.
int64_t label_count(const Json& config);
// `whole` must be a multiple of `part`.
int64_t quotient(const Json& config, int64_t whole, int64_t part, std::string_view what);

}  // namespace theseus::model
