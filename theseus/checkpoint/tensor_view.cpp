#include "theseus/checkpoint/tensor_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::checkpoint {
namespace {

constexpr std::pair<std::string_view, at::ScalarType> kScalarTypes[] = {
    {"F32", at::kFloat}, {"F16", at::kHalf},  {"BF16", at::kBFloat16}, {"F64", at::kDouble},
    {"I64", at::kLong},  {"I32", at::kInt},   {"I16", at::kShort},     {"I8", at::kChar},
    {"U8", at::kByte},   {"BOOL", at::kBool},
};

// Elements from the first to the last that the array touches.
int64_t extent(const MappedArray& array, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t i = 0; i < strides.size(); ++i) {
    last += (array.shape[i] - 1) * strides[i];
  }
  return last + 1;
}

std::vector<int64_t> contiguous_strides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * shape[i];
  }
  return strides;
}

void check_bools(const std::byte* first, int64_t count, std::string_view where) {
  const auto* odd = std::find_if(
      first, first + count, [](std::byte byte) { return std::to_integer<int>(byte) > 1; });
  require(
      odd == first + count, where, ": a BOOL holds the byte ",
      odd == first + count ? 0 : std::to_integer<int>(*odd), "; only 0 and 1 are truth values");
}

}  // namespace

at::ScalarType scalar_type(std::string_view word, std::string_view where) {
  for (const auto& [known, type] : kScalarTypes) {
    if (known == word) {
      return type;
    }
  }
  throw InputError(c10::str(
      where, " has dtype ", word,
      ", which cannot be computed with; usable are F32 F16 BF16 F64 I64 I32 I16 I8 U8 BOOL"));
}

std::string_view dtype_word(at::ScalarType type, std::string_view where) {
  for (const auto& [word, known] : kScalarTypes) {
    if (known == type) {
      return word;
    }
  }
  throw InputError(c10::str(where, " has dtype ", c10::toString(type), ", which is not supported"));
}

at::Tensor view_mapped(
    std::shared_ptr<const MappedFile> file, const MappedArray& array, std::string_view where) {
  const auto options = at::TensorOptions().dtype(array.dtype);
  if (std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end()) {
    return at::empty(array.shape, options);
  }
  const auto strides = array.strides.empty() ? contiguous_strides(array.shape) : array.strides;
  const int64_t count = extent(array, strides);
  const std::byte* first = file->bytes().data() + array.begin;
  if (array.dtype == at::kBool) {
    check_bools(first, count, where);
  }
  const size_t width = c10::elementSize(array.dtype);
  if (reinterpret_cast<uintptr_t>(first) % width != 0) {
    const auto copy = at::empty({count}, options);
    std::memcpy(copy.data_ptr(), first, static_cast<size_t>(count) * width);
    return copy.as_strided(array.shape, strides);
  }
  // The mapping is private and without write permission: the cast cannot change the file.
  return at::from_blob(
      const_cast<std::byte*>(first), array.shape, strides, [file = std::move(file)](void*) {},
      options);
}

}  // namespace theseus::checkpoint
