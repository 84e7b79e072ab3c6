#pragma once

#include <filesystem>
#include <map>
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
  // `entries` must outlive it. Not `synced`: nothing is reserved, and the disk is not waited for.
  StagedSafetensors(
      const std::filesystem::path& path, std::vector<const Entry*> entries, bool synced = true);

  // As they stand in the file.
  const std::vector<const Entry*>& entries() const { return entries_; }
  // Each once, in any order; with the last one it syncs. Throws InternalError for another shape or dtype than announced.
  void put(const Entry& entry, const at::Tensor& given);
  void fill(const Source& source);  // puts all of them
  // Throws InternalError when one is missing.
  void commit();

 private:
  std::vector<const Entry*> entries_;
  std::map<const Entry*, int64_t> open_;  // not put yet, with their places
  std::unique_ptr<AtomicFile> file_;
  bool synced_;
};

}  // namespace theseus::checkpoint
