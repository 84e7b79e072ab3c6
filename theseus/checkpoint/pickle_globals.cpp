#include "theseus/checkpoint/pickle_globals.h"

namespace theseus::checkpoint {

std::span<const PickleGlobal> all_pickle_globals() {
  using Role = GlobalRole;
  static constexpr PickleGlobal kGlobals[] = {
      {"collections", "OrderedDict", Role::kOrderedDict, {}},
      {"torch", "Size", Role::kSize, {}},
      {"_codecs", "encode", Role::kEncode, {}},
      {"builtins", "bytes", Role::kBytes, {}},
      {"__builtin__", "bytes", Role::kBytes, {}},
      {"torch._utils", "_rebuild_tensor", Role::kTensorV1, {}},
      {"torch._utils", "_rebuild_tensor_v2", Role::kTensorV1, {}},
      {"torch._utils", "_rebuild_tensor_v3", Role::kTensorV3, {}},
      {"torch._utils", "_rebuild_parameter", Role::kParameter, {}},
      {"torch._utils", "_rebuild_parameter_with_state", Role::kParameter, {}},
      {"torch._tensor", "_rebuild_from_type_v2", Role::kFromType, {}},
      {"torch", "Tensor", Role::kTensorType, {}},
      {"torch._tensor", "Tensor", Role::kTensorType, {}},
      {"torch.nn.parameter", "Parameter", Role::kTensorType, {}},
      {"torch.nn.parameter", "Buffer", Role::kTensorType, {}},
      {"torch", "FloatStorage", Role::kStorage, "F32"},
      {"torch", "HalfStorage", Role::kStorage, "F16"},
      {"torch", "BFloat16Storage", Role::kStorage, "BF16"},
      {"torch", "DoubleStorage", Role::kStorage, "F64"},
      {"torch", "CharStorage", Role::kStorage, "I8"},
      {"torch", "ShortStorage", Role::kStorage, "I16"},
      {"torch", "IntStorage", Role::kStorage, "I32"},
      {"torch", "LongStorage", Role::kStorage, "I64"},
      {"torch", "ByteStorage", Role::kStorage, "U8"},
      {"torch", "BoolStorage", Role::kStorage, "BOOL"},
      {"torch", "ComplexFloatStorage", Role::kStorage, "C64"},
      {"torch", "UntypedStorage", Role::kStorage, {}},
      {"torch.storage", "UntypedStorage", Role::kStorage, {}},
      {"torch.storage", "_UntypedStorage", Role::kStorage, {}},
      {"torch", "float32", Role::kDtype, "F32"},
      {"torch", "float16", Role::kDtype, "F16"},
      {"torch", "bfloat16", Role::kDtype, "BF16"},
      {"torch", "float64", Role::kDtype, "F64"},
      {"torch", "int8", Role::kDtype, "I8"},
      {"torch", "int16", Role::kDtype, "I16"},
      {"torch", "int32", Role::kDtype, "I32"},
      {"torch", "int64", Role::kDtype, "I64"},
      {"torch", "uint8", Role::kDtype, "U8"},
      {"torch", "uint16", Role::kDtype, "U16"},
      {"torch", "uint32", Role::kDtype, "U32"},
      {"torch", "uint64", Role::kDtype, "U64"},
      {"torch", "bool", Role::kDtype, "BOOL"},
      {"torch", "complex64", Role::kDtype, "C64"},
      {"torch", "float8_e4m3fn", Role::kDtype, "F8_E4M3"},
      {"torch", "float8_e5m2", Role::kDtype, "F8_E5M2"},
      {"torch", "float8_e4m3fnuz", Role::kDtype, "F8_E4M3FNUZ"},
      {"torch", "float8_e5m2fnuz", Role::kDtype, "F8_E5M2FNUZ"},
      {"torch", "float8_e8m0fnu", Role::kDtype, "F8_E8M0"},
  };
  return kGlobals;
}

const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  for (const PickleGlobal& global : all_pickle_globals()) {
    if (global.module == module && global.name == name) {
      return &global;
    }
  }
  return nullptr;
}

}  // namespace theseus::checkpoint
