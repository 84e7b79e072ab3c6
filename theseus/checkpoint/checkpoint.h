#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/checkpoint/tensor_file.h"

namespace theseus::checkpoint {

// Named tensors from one file or from the shards of an index, opened lazily: opening reads headers
// only. Not copied, not converted, not renamed: what the files say.
class Checkpoint {
 public:
  // `path` is a weights file, an index file (*.index.json) or a directory. In a directory the file
  // is looked for under the names people's tools write, `preferred` names first (see
  // find_weights). Throws InputError.
  static Checkpoint open(
      const std::filesystem::path& path, const std::vector<std::string>& preferred = {});

  // Every tensor, sorted by name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  // Throws InputError naming the nearest names when there is no such tensor.
  const TensorInfo& info(std::string_view name) const;
  // Read-only view of the file's bytes, in the file's dtype; no copy unless the file misaligns it.
  at::Tensor tensor(std::string_view name) const;
  // The tensor's pages no longer count as this process's memory; reading brings them back. For those
  // who pass through a checkpoint larger than memory.
  void forget(std::string_view name) const;
  // From now on there is no such tensor here.
  void leave_out(std::string_view name);

  // The weights files, in index order, as given or found; never empty.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  int64_t bytes() const;
  // The files' notes (see TensorFile::note), each beginning with the file's name; mostly empty.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void add_file(const std::filesystem::path& path);
  void add_index(const std::filesystem::path& path);
  void sort();

  std::vector<std::filesystem::path> files_;
  std::vector<std::shared_ptr<const TensorFile>> readers_;
  std::vector<std::string> notes_;
  std::vector<TensorInfo> tensors_;
  std::vector<size_t> positions_;  // of tensors_[i] in its reader
};

// The weights file or index of `directory`: the first of `preferred`, then of the names that
// transformers, OpenCLIP and timm write, then the only file with a weights extension.
// Throws InputError listing what is there when none or several qualify.
std::filesystem::path find_weights(
    const std::filesystem::path& directory, const std::vector<std::string>& preferred = {});

// Whether a file of this name in a model's directory would be taken for its weights.
bool is_known_weights_name(std::string_view name);

}  // namespace theseus::checkpoint
