#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::checkpoint {

// One tensor of a safetensors header; `begin` and `end` are byte positions in the file.
struct SafetensorsRecord {
  std::string name;
  std::string_view dtype;  // one of all_dtypes()
  std::vector<int64_t> shape;
  size_t begin = 0;
  size_t end = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsRecord> tensors;  // sorted by name
  std::map<std::string, std::string> metadata;
};

constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;  // the reference reader's limit

// Whether `file` begins as a safetensors file does: a plausible header length, then '{'.
bool begins_like_safetensors(std::span<const std::byte> file);

// Reads the header of the whole file `file`. On return the tensors fill the data part without hole
// or overlap, every byte range lies in the file and is as long as shape and dtype say. Throws
// InputError, which names `origin` and the tensor, for anything else.
SafetensorsHeader read_safetensors_header(
    std::span<const std::byte> file, const std::string& origin);

}  // namespace theseus::checkpoint
