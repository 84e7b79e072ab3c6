#include "theseus/checkpoint/write.h"

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <string_view>
#include <system_error>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/made_files.h"
#include "theseus/checkpoint/staged_safetensors.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

using Shards = std::vector<std::vector<const Entry*>>;

constexpr std::string_view kSafetensorsIndexEnding = ".safetensors.index.json";

Shards fill_shards(const std::vector<const Entry*>& entries, int64_t shard_bytes) {
  Shards shards(1);
  int64_t filled = 0;
  for (const Entry* entry : entries) {
    const int64_t size = entry_bytes(*entry);
    if (!shards.back().empty() && size > shard_bytes - filled) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(entry);
    filled += size;
  }
  return shards;
}

int64_t elements_of(const Entry& entry) {
  return entry_bytes(entry) / static_cast<int64_t>(c10::elementSize(entry.dtype));
}

// As transformers writes it: two spaces, ASCII, sorted, a newline at the end.
std::string index_text(
    const Shards& shards, const std::vector<std::string>& names, const std::string& metadata) {
  int64_t bytes = 0;
  int64_t elements = 0;
  nlohmann::json map = nlohmann::json::object();
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const Entry* entry : shards[i]) {
      bytes += entry_bytes(*entry);
      elements += elements_of(*entry);
      map[entry->name] = names[i];
    }
  }
  auto about = metadata.empty() ? nlohmann::json::object() : nlohmann::json::parse(metadata);
  about["total_size"] = bytes;
  if (about.contains("total_parameters")) {
    about["total_parameters"] = elements;
  }
  const nlohmann::json index = {{"metadata", std::move(about)}, {"weight_map", std::move(map)}};
  return index.dump(2, ' ', true) + "\n";
}

// Whether `name` is one that write_checkpoint gives: the stem's file, shard or index.
bool is_of_stem(const std::string& name, const std::string& stem) {
  static const std::regex rest(R"((-\d{5,}-of-\d{5,})?\.safetensors|\.safetensors\.index\.json)");
  return name.starts_with(stem) &&
         std::regex_match(
             name.begin() + static_cast<std::ptrdiff_t>(stem.size()), name.end(), rest);
}

// The stem's files that are there but not among `written`. An index comes first: a crash while
// they are removed must not leave an index without its shards.
std::vector<fs::path> stale_files(
    const fs::path& directory, const std::string& stem, const std::vector<std::string>& written) {
  std::error_code error;
  const fs::directory_iterator files(directory, error);
  require(!error, "cannot list ", directory.string(), ": ", error.message());
  std::vector<fs::path> stale;
  for (const auto& file : files) {
    const auto name = file.path().filename().string();
    if (is_of_stem(name, stem) &&
        std::find(written.begin(), written.end(), name) == written.end()) {
      stale.push_back(file.path());
    }
  }
  std::sort(stale.begin(), stale.end(), [](const fs::path& left, const fs::path& right) {
    return std::pair(left.extension() != ".json", left) <
           std::pair(right.extension() != ".json", right);
  });
  return stale;
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  require(!error, "cannot remove ", path.string(), ": ", error.message());
}

std::unique_ptr<AtomicFile> stage_index(const fs::path& path, const std::string& text) {
  auto file = std::make_unique<AtomicFile>(path, static_cast<int64_t>(text.size()));
  file->append(text);
  file->sync();
  return file;
}

// Reserves all the space before the first tensor is asked for.
std::vector<StagedSafetensors> stage_shards(
    const fs::path& directory,
    const std::vector<std::string>& names,
    const Shards& shards,
    const Source& source) {
  std::vector<StagedSafetensors> staged;
  for (size_t i = 0; i < shards.size(); ++i) {
    staged.emplace_back(directory / names[i], shards[i]);
  }
  for (StagedSafetensors& file : staged) {
    file.fill(source);
  }
  return staged;
}

// Shards of an older run may have the names of ours: its index must not see some of each.
void remove_index_of_replaced(
    const fs::path& index, const fs::path& directory, const std::vector<std::string>& shards) {
  std::error_code error;
  const bool replaces = std::any_of(shards.begin(), shards.end(), [&](const std::string& name) {
    return fs::exists(directory / name, error);
  });
  if (replaces) {
    remove_file(index);
  }
}

// The entries of each file, files in the order of their names.
std::map<std::string, std::vector<const Entry*>> entries_of_files(
    const Layout& layout, const std::vector<const Entry*>& entries) {
  std::map<std::string, std::vector<const Entry*>> files;
  for (const Entry* entry : entries) {
    const auto file = layout.file_of.find(entry->name);
    require<InternalError>(
        file != layout.file_of.end(), "the layout has no file for '", entry->name, "'");
    files[file->second].push_back(entry);
  }
  require<InternalError>(
      !layout.index.empty() || files.size() == 1, files.size(), " files without an index");
  return files;
}

void check_free(const fs::path& path) {
  std::error_code error;
  require(
      !fs::exists(fs::symlink_status(path, error)), path.string(),
      " is already there; write to an empty directory");
}

}  // namespace

std::vector<std::string> shard_names(const std::string& stem, size_t count) {
  if (count == 1) {
    return {stem + ".safetensors"};
  }
  const auto five_digits = [](size_t number) {
    const auto text = std::to_string(number);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  std::vector<std::string> names;
  for (size_t i = 1; i <= count; ++i) {
    names.push_back(
        c10::str(stem, "-", five_digits(i), "-of-", five_digits(count), ".safetensors"));
  }
  return names;
}

void write_safetensors(
    const fs::path& path, const std::vector<Entry>& entries, const Source& source, bool synced) {
  StagedSafetensors file(path, stored_entries(entries), synced);
  file.fill(source);
  file.commit();
}

void write_safetensors(
    const fs::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    bool synced) {
  std::vector<Entry> entries;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : tensors) {
    require<InternalError>(tensor.defined(), "tensor '", name, "' to be written is undefined");
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), ""});
    by_name.emplace(name, tensor);
  }
  write_safetensors(
      path, entries, [&](const Entry& entry) { return by_name.at(entry.name); }, synced);
}

std::vector<std::string> write_checkpoint(
    const fs::path& directory,
    const std::string& stem,
    const std::vector<Entry>& entries,
    const Source& source,
    int64_t shard_bytes) {
  std::error_code error;
  require(fs::is_directory(directory, error), directory.string(), " is not a directory");
  const auto shards = fill_shards(stored_entries(entries), shard_bytes);
  auto names = shard_names(stem, shards.size());
  auto staged = stage_shards(directory, names, shards, source);
  if (shards.size() == 1) {
    staged.front().commit();
  } else {
    const auto index_path = directory / (stem + std::string(kSafetensorsIndexEnding));
    const auto index = stage_index(index_path, index_text(shards, names, ""));
    remove_index_of_replaced(index_path, directory, names);
    for (StagedSafetensors& file : staged) {
      file.commit();
    }
    index->commit();
    names.push_back(index_path.filename().string());
  }
  for (const auto& file : stale_files(directory, stem, names)) {
    remove_file(file);
  }
  return names;
}

StagedCheckpoint::StagedCheckpoint(
    const fs::path& directory, Layout layout, const std::vector<Entry>& entries)
    : directory_(directory), layout_(std::move(layout)) {
  std::error_code error;
  require(fs::is_directory(directory, error), directory.string(), " is not a directory");
  const auto held = entries_of_files(layout_, stored_entries(entries));
  for (const auto& [name, some] : held) {
    check_free(directory / name);
    note_made((directory / name).parent_path());
    fs::create_directories((directory / name).parent_path(), error);
    names_.push_back(name);
  }
  check_free(directory / (layout_.index.empty() ? names_.front() : layout_.index));
  for (const auto& [name, some] : held) {
    for (const Entry* entry : some) {
      file_of_[entry] = files_.size();
    }
    files_.emplace_back(directory / name, some);
  }
}

StagedCheckpoint::~StagedCheckpoint() = default;

std::vector<const Entry*> StagedCheckpoint::entries() const {
  std::vector<const Entry*> all;
  for (const auto& file : files_) {
    all.insert(all.end(), file.entries().begin(), file.entries().end());
  }
  return all;
}

void StagedCheckpoint::put(const Entry& entry, const at::Tensor& tensor) {
  files_.at(file_of_.at(&entry)).put(entry, tensor);
}

std::vector<std::string> StagedCheckpoint::commit() {
  std::unique_ptr<AtomicFile> index;
  if (!layout_.index.empty()) {
    Shards shards;
    for (const auto& file : files_) {
      shards.push_back(file.entries());
    }
    index = stage_index(directory_ / layout_.index, index_text(shards, names_, layout_.metadata));
  }
  for (StagedSafetensors& file : files_) {
    file.commit();
  }
  auto names = names_;
  if (index != nullptr) {
    index->commit();
    names.push_back(layout_.index);
  }
  return names;
}

std::vector<std::string> write_checkpoint(
    const fs::path& directory,
    const Layout& layout,
    const std::vector<Entry>& entries,
    const Source& source) {
  StagedCheckpoint staged(directory, layout, entries);
  for (const Entry* entry : staged.entries()) {
    staged.put(*entry, source(*entry));
  }
  return staged.commit();
}

}  // namespace theseus::checkpoint
