// The whole input is a safetensors file.
#include <cstddef>
#include <cstdint>

#include "theseus/base/error.h"
#include "theseus/checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace theseus;
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(data), size);
  try {
    const auto header = checkpoint::read_safetensors_header(file, "fuzz");
    for (const auto& tensor : header.tensors) {
      require<InternalError>(
          tensor.begin <= tensor.end && tensor.end <= size, "a tensor leaves the file");
    }
  } catch (const InputError&) {
  }
  return 0;
}
