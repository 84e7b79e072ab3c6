#include "tests/support/torch_save.h"

#include <cstdint>
#include <map>
#include <stdexcept>

#include <ATen/ATen.h>

#include "tests/support/raw_zip.h"
#include "tests/support/scratch_dir.h"

namespace theseus::tests {
namespace {

std::string little_endian(int64_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  }
  return bytes;
}

std::string text(const std::string& value) {
  return c10::str("X", little_endian(static_cast<int64_t>(value.size())), value);
}

std::string integers(at::IntArrayRef values) {
  std::string tuple = "(";
  for (const int64_t value : values) {
    tuple.append("J").append(little_endian(value));
  }
  return tuple + "t";
}

std::string storage_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return "FloatStorage";
    case at::kHalf:
      return "HalfStorage";
    case at::kBFloat16:
      return "BFloat16Storage";
    case at::kLong:
      return "LongStorage";
    default:
      throw std::runtime_error("torch_save: another dtype");
  }
}

// Opcodes of pickle protocol 2 that call torch._utils._rebuild_tensor_v2.
std::string rebuild(const at::Tensor& tensor, const std::string& storage) {
  const auto elements = static_cast<int64_t>(tensor.storage().nbytes() / tensor.itemsize());
  return c10::str(
      "ctorch._utils\n_rebuild_tensor_v2\n((", text("storage"), "ctorch\n",
      storage_type(tensor.scalar_type()), "\n", text(storage), text("cpu"), "J",
      little_endian(elements), "tQJ", little_endian(tensor.storage_offset()),
      integers(tensor.sizes()), integers(tensor.strides()), "\x89",
      "ccollections\nOrderedDict\n)RtR");
}

}  // namespace

void torch_save(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::map<const void*, std::string> storages;
  std::vector<RawZipEntry> data;
  std::string pickle = "\x80\x02}(";
  for (const auto& [name, tensor] : tensors) {
    const void* memory = tensor.storage().data();
    const auto [found, added] = storages.emplace(memory, std::to_string(storages.size()));
    if (added) {
      data.push_back(
          {.name = "archive/data/" + found->second,
           .bytes = std::string(static_cast<const char*>(memory), tensor.storage().nbytes())});
    }
    pickle += text(name) + rebuild(tensor, found->second);
  }
  data.insert(data.begin(), {.name = "archive/data.pkl", .bytes = pickle + "u."});
  data.push_back({.name = "archive/version", .bytes = "3\n"});
  write_bytes(path, raw_zip(data, false));
}

}  // namespace theseus::tests
