#include "theseus/checkpoint/pickle.h"

#include <bit>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/dtype.h"
#include "theseus/checkpoint/pickle_globals.h"
#include "theseus/checkpoint/unpickler.h"

namespace theseus::checkpoint {
namespace {

// A state dict of a hundred thousand tensors takes about 20 MB. An arena is some fifty times
// larger than its pickle.
constexpr size_t kMaxPickleBytes = size_t{128} << 20;

}  // namespace

std::string_view kind_word(PickleKind kind) {
  static constexpr std::string_view kWords[] = {"None",   "a bool",    "an integer", "a float",
                                                "text",   "bytes",     "a list",     "a tuple",
                                                "a dict", "a storage", "a tensor",   "a type"};
  return kWords[static_cast<size_t>(kind)];
}

Pickle::Pickle(std::span<const std::byte> bytes, const std::string& origin) : origin_(origin) {
  require(
      bytes.size() <= kMaxPickleBytes, origin, ": a pickle of ", bytes.size(), " bytes; at most ",
      kMaxPickleBytes, " are read");
  Unpickler(*this, bytes).run();
}

const Pickle::Node& Pickle::node(Value value, PickleKind expected) const {
  const Node& found = nodes_[value.index];
  require<InternalError>(
      found.kind == expected, "asked a pickle for ", kind_word(expected), " where it has ",
      kind_word(found.kind));
  return found;
}

bool Pickle::boolean(Value value) const {
  return node(value, PickleKind::kBool).integer != 0;
}

int64_t Pickle::integer(Value value) const {
  return node(value, PickleKind::kInteger).integer;
}

double Pickle::number(Value value) const {
  return std::bit_cast<double>(node(value, PickleKind::kFloat).integer);
}

std::string_view Pickle::text(Value value) const {
  return node(value, PickleKind::kText).text;
}

std::span<const Pickle::Value> Pickle::items(Value value) const {
  const PickleKind found = kind(value);
  const bool one_of_them = found == PickleKind::kTuple || found == PickleKind::kDict;
  return node(value, one_of_them ? found : PickleKind::kList).items;
}

std::optional<Pickle::Value> Pickle::find(Value dict, std::string_view key) const {
  const auto& items = node(dict, PickleKind::kDict).items;
  for (size_t i = items.size(); i >= 2; i -= 2) {
    const Node& found = nodes_[items[i - 2].index];
    if (found.kind == PickleKind::kText && found.text == key) {
      return items[i - 1];
    }
  }
  return std::nullopt;
}

std::vector<int64_t> Pickle::integers(Value value, std::string_view what) const {
  // Many tensors may name one long tuple: without the limit their shapes would be copies of it.
  require(
      items(value).size() <= kMaxDimensions, origin_, ": a tensor's ", what, " has ",
      items(value).size(), " numbers; at most ", kMaxDimensions, " dimensions are read");
  std::vector<int64_t> result;
  for (const Value item : items(value)) {
    require(
        kind(item) == PickleKind::kInteger, origin_, ": a tensor's ", what, " holds ",
        kind_word(kind(item)), " where an integer is expected");
    result.push_back(integer(item));
  }
  return result;
}

PickledTensor Pickle::tensor(Value value) const {
  const auto& parts = node(value, PickleKind::kTensor).items;
  const Node& storage = node(parts[0], PickleKind::kStorage);
  const auto global_dtype = [&](Value global) {
    return all_pickle_globals()[static_cast<size_t>(nodes_[global.index].integer)].dtype;
  };
  const auto storage_dtype = global_dtype(storage.items[0]);
  PickledTensor result;
  result.storage = storage.text;
  result.dtype = parts.size() > 4 ? global_dtype(parts[4]) : storage_dtype;
  require(
      !result.dtype.empty(), origin_, ": a tensor of the untyped storage '",
      printable(result.storage), "' has no dtype");
  // An untyped storage counts bytes.
  const auto* counted = find_dtype(storage_dtype.empty() ? "U8" : storage_dtype);
  const int64_t count = integer(storage.items[1]);
  const auto bytes = count < 0 ? std::nullopt : packed_bytes(*counted, count);
  require(
      bytes.has_value(), origin_, ": storage '", printable(result.storage), "' of ", count,
      " elements is not possible");
  result.storage_bytes = *bytes;
  result.offset = integer(parts[1]);
  result.shape = integers(parts[2], "size");
  result.strides = integers(parts[3], "stride");
  require(
      result.shape.size() == result.strides.size(), origin_, ": a tensor has ", result.shape.size(),
      " extents but ", result.strides.size(), " strides");
  return result;
}

}  // namespace theseus::checkpoint
