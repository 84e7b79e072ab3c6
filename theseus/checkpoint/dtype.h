#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace theseus::checkpoint {

// An element type under safetensors' word for it. Types that libtorch cannot compute with are known
// too, so that a file which holds some can still be listed.
struct Dtype {
  std::string_view word;
  int64_t bits;
};

// Every type of the format, in the order of the reference writer's enumeration: it stores tensors
// in the reverse of this order.
std::span<const Dtype> all_dtypes();

// Nothing when the format has no such word.
const Dtype* find_dtype(std::string_view word);

constexpr size_t kMaxDimensions = 64;  // libtorch's own limit

// Bytes of `elements` packed elements; nothing when that is not a whole number or exceeds int64.
std::optional<int64_t> packed_bytes(const Dtype& dtype, int64_t elements);

// The product of `shape`; nothing when an extent is negative or the product of the extents above
// zero exceeds int64. Strides are such products, so [0, 2^62, 4] has no representation either.
std::optional<int64_t> checked_elements(std::span<const int64_t> shape);

}  // namespace theseus::checkpoint
