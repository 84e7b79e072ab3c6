#include "theseus/checkpoint/dtype.h"

namespace theseus::checkpoint {

std::span<const Dtype> all_dtypes() {
  static constexpr Dtype kDtypes[] = {
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64},
  };
  return kDtypes;
}

const Dtype* find_dtype(std::string_view word) {
  for (const Dtype& dtype : all_dtypes()) {
    if (dtype.word == word) {
      return &dtype;
    }
  }
  return nullptr;
}

std::optional<int64_t> packed_bytes(const Dtype& dtype, int64_t elements) {
  int64_t bits = 0;
  if (__builtin_mul_overflow(elements, dtype.bits, &bits) || bits % 8 != 0) {
    return std::nullopt;
  }
  return bits / 8;
}

std::optional<int64_t> checked_elements(std::span<const int64_t> shape) {
  int64_t product = 1;
  bool empty = false;
  for (const int64_t extent : shape) {
    if (extent < 0 || __builtin_mul_overflow(product, extent == 0 ? 1 : extent, &product)) {
      return std::nullopt;
    }
    empty = empty || extent == 0;
  }
  return empty ? 0 : product;
}

}  // namespace theseus::checkpoint
