#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/base/file.h"

namespace theseus::checkpoint {

// libtorch's type for safetensors' word. Throws InputError, beginning with `where`, for a type that
// cannot be computed with here.
at::ScalarType scalar_type(std::string_view word, std::string_view where);

// safetensors' word for libtorch's type. Throws InputError, beginning with `where`, when
// scalar_type() would not give it back.
std::string_view dtype_word(at::ScalarType type, std::string_view where);

// A strided array in a mapped file. The caller has checked that it lies inside the file.
struct MappedArray {
  size_t begin = 0;  // byte position of the first element
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;  // in elements, not negative; empty: contiguous
};

// The array as a read-only tensor that keeps the mapping alive; a copy only where the file
// misaligns the elements. Throws InputError, beginning with `where`, when a BOOL holds neither 0
// nor 1: such a byte is undefined behaviour in C++.
at::Tensor view_mapped(
    std::shared_ptr<const MappedFile> file, const MappedArray& array, std::string_view where);

}  // namespace theseus::checkpoint
