#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::checkpoint {

constexpr int64_t kDefaultShardBytes = 5'000'000'000;

// What will be written under one name. `tied_to` names an entry that already holds these values:
// then nothing is stored for this one (readers tie it themselves, by their config).
struct Entry {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::string tied_to;
};

// Yields one entry's tensor when its turn comes, so that a model larger than memory can be written.
using Source = std::function<at::Tensor(const Entry&)>;

// "<stem>.safetensors" for one, "<stem>-00001-of-0000N.safetensors" and so on for several.
std::vector<std::string> shard_names(const std::string& stem, size_t count);

// One safetensors file. Tensors stand in the order of the reference writer: by element type
// (widest alignment first), then by name. The same input gives the same bytes. The file appears whole
// or not at all. Throws InputError when it cannot be written, InternalError when `source` yields
// another shape or dtype than the entry says. Not `synced`: without waiting for the disk
// (AtomicFile::commit_unsynced).
void write_safetensors(
    const std::filesystem::path& path,
    const std::vector<Entry>& entries,
    const Source& source,
    bool synced = true);
void write_safetensors(
    const std::filesystem::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    bool synced = true);

// The shards and index of a checkpoint in `directory` (which must exist): `<stem>.safetensors` when
// everything fits one shard, else `<stem>-00001-of-0000N.safetensors` and
// `<stem>.safetensors.index.json`. Shards are filled in the order of names. Space for all of them
// is reserved first, and nothing appears until everything is written and synced.
//
// What an older run left under the same stem (the single file, shards, index) is replaced as a
// whole: files that are not part of this checkpoint are removed at the end, because a reader would
// prefer an older model.safetensors to our index. A crash in between leaves a directory that reads
// as the older or as the new checkpoint, or is refused for its missing index; never a mix.
// Returns the names of the files, in order.
std::vector<std::string> write_checkpoint(
    const std::filesystem::path& directory,
    const std::string& stem,
    const std::vector<Entry>& entries,
    const Source& source,
    int64_t shard_bytes = kDefaultShardBytes);

// Which file holds which entry, when it is not for us to choose.
struct Layout {
  std::map<std::string, std::string> file_of;  // entry -> file, relative to the directory
  std::string index;     // the index's name; empty: there is one file and no index
  std::string metadata;  // JSON object for the index: its total_size and, where it has one, its
                         // total_parameters are set anew; empty: total_size alone
};

class StagedSafetensors;

// A checkpoint in the caller's layout, with the promises of the one above: space for all of it is
// reserved first, and nothing appears until everything is written and synced. Its tensors come one by one,
// in any order.
class StagedCheckpoint {
 public:
  // `entries` must outlive it. Throws InputError when one of the files is already there.
  StagedCheckpoint(
      const std::filesystem::path& directory, Layout layout, const std::vector<Entry>& entries);
  ~StagedCheckpoint();
  StagedCheckpoint(const StagedCheckpoint&) = delete;
  StagedCheckpoint& operator=(const StagedCheckpoint&) = delete;

  // Those that are stored, as they stand in the files, files in the order of their names.
  std::vector<const Entry*> entries() const;
  void put(const Entry& entry, const at::Tensor& tensor);
  // When all are put. Returns the names of the files, in order, the index last.
  std::vector<std::string> commit();

 private:
  std::filesystem::path directory_;
  Layout layout_;
  std::vector<std::string> names_;
  std::vector<StagedSafetensors> files_;
  std::map<const Entry*, size_t> file_of_;
};

// The same in one call: tensors are asked for as they stand in the files.
std::vector<std::string> write_checkpoint(
    const std::filesystem::path& directory,
    const Layout& layout,
    const std::vector<Entry>& entries,
    const Source& source);

}  // namespace theseus::checkpoint
