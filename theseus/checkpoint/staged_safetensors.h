#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "theseus/base/file.h"
#include "theseus/checkpoint/write.h"

namespace theseus::checkpoint {

// The entries that are stored, sorted by name: all but the tied ones. Throws InternalError when a
// name appears twice, or an entry is tied to other than a stored one of its shape and dtype.
std::vector<const Entry*> stored_entries(const std::vector<Entry>& entries);

// Bytes of the entry's elements.
int64_t entry_bytes(const Entry& entry);

// `text` as a JSON string. Throws InputError when it is not UTF-8.
std::string json_string(const std::string& text, bool ascii);

// A safetensors file under a temporary name, whose space is reserved. Gone when not committed.
class StagedSafetensors {
 public:
  // `entries` must outlive it.
  StagedSafetensors(const std::filesystem::path& path, std::vector<const Entry*> entries);

  // Writes and syncs everything. Throws InternalError when `source` yields another shape or dtype
  // than announced.
  void fill(const Source& source);
  void commit() { file_->commit(); }

 private:
  void append(const Entry& entry, const at::Tensor& given);

  std::vector<const Entry*> entries_;
  std::string header_;
  std::unique_ptr<AtomicFile> file_;
};

}  // namespace theseus::checkpoint
