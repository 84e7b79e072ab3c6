#pragma once

#include <span>
#include <string_view>

namespace theseus::checkpoint {

// What a global stands for in a pickle of a state dict.
enum class GlobalRole {
  kOrderedDict,
  kSize,
  kEncode,      // _codecs.encode(text, 'latin1'): how protocol 2 spells bytes
  kBytes,       // builtins.bytes(): how protocol 2 spells b''
  kTensorV1,    // (storage, offset, size, stride, ...)
  kTensorV3,    // (storage, offset, size, stride, requires_grad, hooks, dtype, ...)
  kParameter,   // (tensor, requires_grad, hooks, ...)
  kFromType,    // (function, type, arguments, state)
  kTensorType,  // a class that kFromType may name
  kStorage,     // a storage class
  kDtype,
};

struct PickleGlobal {
  std::string_view module;
  std::string_view name;
  GlobalRole role;
  std::string_view dtype;  // of kStorage and kDtype: safetensors' word; empty: untyped bytes
};

// Every global that may be named. None is ever imported or called: each is a row of this table.
std::span<const PickleGlobal> all_pickle_globals();

// Nothing when the table has no such row.
const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name);

}  // namespace theseus::checkpoint
