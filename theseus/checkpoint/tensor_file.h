#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/base/file.h"
#include "theseus/base/plugin.h"

namespace theseus::checkpoint {

// One tensor as a file declares it, checked against the file's size.
struct TensorInfo {
  std::string name;
  std::string dtype;  // safetensors' word: F32, BF16, I64, F8_E4M3, ...
  std::vector<int64_t> shape;
  int64_t bytes = 0;    // of the elements, without sharing
  std::string storage;  // equal for tensors of one file that are the same view of the same
                        // memory (tied); empty where the format has no sharing
  size_t file = 0;      // index into Checkpoint::files()

  int64_t elements() const;
};

// One open weights file. Implementations are immutable and safe to read from several threads.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  // Sorted by name.
  virtual std::span<const TensorInfo> tensors() const = 0;
  // `index` into tensors(). Read-only; keeps the file mapped while it lives. Throws InputError for
  // a dtype that libtorch cannot compute with, by name.
  virtual at::Tensor tensor(size_t index) const = 0;
  // See MappedFile::forget.
  virtual void forget(size_t index) const = 0;
  // What a reader of `inspect` should know about how the tensors were found, such as "read from key
  // 'state_dict'; other keys: epoch, optimizer"; empty when there is nothing to say.
  virtual std::string note() const { return {}; }
};

// A file format: one file in checkpoint/formats/.
struct Format {
  std::vector<std::string_view> extensions;  // ".safetensors"
  // Whether the file's first bytes are of this format.
  bool (*recognises)(std::span<const std::byte> bytes);
  std::unique_ptr<TensorFile> (*open)(std::shared_ptr<const MappedFile> file);
};

// Every format in this build, sorted by name.
std::span<const Plugin<Format>> all_formats();

}  // namespace theseus::checkpoint
