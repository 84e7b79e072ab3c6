#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::checkpoint {

// What a pickle may hold. Storages, dtypes and the few known globals are values of their own, so
// that nothing has to be called to make them.
enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInteger,
  kFloat,
  kText,
  kBytes,  // opaque: the content is not kept apart from its encoding
  kList,
  kTuple,
  kDict,
  kStorage,
  kTensor,
  kGlobal,
};

// The word for messages: "a dict", "None", ...
std::string_view kind_word(PickleKind kind);

// A tensor as torch.save describes it; nothing in it is checked against a storage's bytes yet.
struct PickledTensor {
  std::string_view dtype;    // safetensors' word
  std::string_view storage;  // key of the zip entry
  int64_t storage_bytes = 0;
  int64_t offset = 0;  // of the first element, in elements
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // as many as extents
};

// A pickle read without running it. Only tensors, dicts, lists, tuples, numbers, text and bytes can
// come out; any global that these do not need is an error which names it.
//
// Values are handles into one arena: cycles cost nothing, depth costs no stack, and memory is at
// most a constant times the pickle's size. Views of text point into `bytes`, which must outlive it.
class Pickle {
 public:
  struct Value {
    uint32_t index = 0;
  };

  // Reads protocols 2 to 5. Throws InputError, which begins with `origin`.
  Pickle(std::span<const std::byte> bytes, const std::string& origin);

  Value root() const { return root_; }
  PickleKind kind(Value value) const { return nodes_[value.index].kind; }

  // Each is for its own kind only, which the caller has asked for; otherwise InternalError.
  bool boolean(Value value) const;
  int64_t integer(Value value) const;
  double number(Value value) const;
  std::string_view text(Value value) const;
  std::span<const Value> items(Value value) const;  // list, tuple; of a dict key, value, key, ...
  // Throws InputError when the description makes no sense in itself.
  PickledTensor tensor(Value value) const;

  // The value of a text key in a dict; the last one when the key was set twice, as in Python.
  std::optional<Value> find(Value dict, std::string_view key) const;

 private:
  friend class Unpickler;
  struct Node {
    PickleKind kind = PickleKind::kNone;
    int64_t integer = 0;  // also the bits of a float, and the row of a global
    std::string_view text = {};
    std::vector<Value> items = {};
  };
  const Node& node(Value value, PickleKind expected) const;
  std::vector<int64_t> integers(Value value, std::string_view what) const;

  std::string origin_;
  std::vector<Node> nodes_;
  Value root_;
};

}  // namespace theseus::checkpoint
