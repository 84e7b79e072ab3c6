#include "theseus/checkpoint/write.h"

#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <system_error>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/checkpoint/dtype.h"
#include "theseus/checkpoint/tensor_view.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

std::string where(const Entry& entry) {
  return c10::str("tensor '", entry.name, "' to be written");
}

int64_t entry_bytes(const Entry& entry) {
  const auto elements = checked_elements(entry.shape);
  require<InternalError>(
      elements.has_value(), where(entry), ": impossible shape [", c10::Join(", ", entry.shape),
      "]");
  return *elements * static_cast<int64_t>(c10::elementSize(entry.dtype));
}

std::string json_text(const std::string& text, bool ascii) {
  try {
    return nlohmann::json(text).dump(-1, ' ', ascii);
  } catch (const nlohmann::json::exception&) {
    throw InputError(c10::str("the tensor name '", text, "' is not UTF-8"));
  }
}

// What is stored, sorted by name: all entries but the tied ones.
std::vector<const Entry*> stored_entries(const std::vector<Entry>& entries) {
  std::map<std::string_view, const Entry*> by_name;
  for (const Entry& entry : entries) {
    require<InternalError>(
        by_name.emplace(entry.name, &entry).second, where(entry), " appears twice");
    require<InternalError>(
        entry.name != "__metadata__", where(entry), ": the format keeps this name for itself");
  }
  std::vector<const Entry*> stored;
  for (const auto& [name, entry] : by_name) {
    if (entry->tied_to.empty()) {
      stored.push_back(entry);
      continue;
    }
    const auto owner = by_name.find(entry->tied_to);
    require<InternalError>(
        owner != by_name.end() && owner->second->tied_to.empty() &&
            owner->second->shape == entry->shape && owner->second->dtype == entry->dtype,
        where(*entry), " is tied to '", entry->tied_to,
        "', which is not a stored entry of the same shape and dtype");
  }
  return stored;
}

size_t dtype_rank(const Entry& entry) {
  return static_cast<size_t>(
      find_dtype(dtype_word(entry.dtype, where(entry))) - all_dtypes().data());
}

// The reference writer's order: widest elements first, so that every tensor is aligned.
void sort_as_stored(std::vector<const Entry*>& entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry* left, const Entry* right) {
    return std::pair(dtype_rank(*right), std::string_view(left->name)) <
           std::pair(dtype_rank(*left), std::string_view(right->name));
  });
}

std::string header(const std::vector<const Entry*>& entries) {
  std::string json = R"({"__metadata__":{"format":"pt"})";
  int64_t offset = 0;
  for (const Entry* entry : entries) {
    const int64_t end = offset + entry_bytes(*entry);
    json += c10::str(
        ",", json_text(entry->name, false), R"(:{"dtype":")", dtype_word(entry->dtype, ""),
        R"(","shape":[)", c10::Join(",", entry->shape), R"(],"data_offsets":[)", offset, ",", end,
        "]}");
    offset = end;
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  }
  return length + json;
}

// One safetensors file that exists, reserved, under a temporary name.
class StagedFile {
 public:
  StagedFile(const fs::path& path, std::vector<const Entry*> entries)
      : entries_(std::move(entries)) {
    sort_as_stored(entries_);
    header_ = header(entries_);
    auto size = static_cast<int64_t>(header_.size());
    for (const Entry* entry : entries_) {
      size += entry_bytes(*entry);
    }
    file_ = std::make_unique<AtomicFile>(path, size);
  }

  void fill(const Source& source) {
    file_->append(header_);
    for (const Entry* entry : entries_) {
      append(*entry, source(*entry));
    }
    file_->sync();
  }
  void commit() { file_->commit(); }

 private:
  void append(const Entry& entry, const at::Tensor& given) {
    require<InternalError>(
        given.defined() && given.layout() == at::kStrided && !given.is_meta(), where(entry),
        " has no values: it is undefined, sparse or on the meta device");
    require<InternalError>(
        given.sizes() == entry.shape && given.scalar_type() == entry.dtype, where(entry), " is ",
        given.scalar_type(), " ", given.sizes(), " where ", entry.dtype, " [",
        c10::Join(", ", entry.shape), "] was announced");
    const auto values = given.detach().to(at::kCPU).resolve_neg().contiguous();
    file_->append(values.data_ptr(), values.nbytes());
  }

  std::vector<const Entry*> entries_;
  std::string header_;
  std::unique_ptr<AtomicFile> file_;
};

std::vector<std::vector<const Entry*>> fill_shards(
    const std::vector<const Entry*>& entries, int64_t shard_bytes) {
  std::vector<std::vector<const Entry*>> shards(1);
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

std::string shard_name(const std::string& stem, size_t index, size_t count) {
  const auto digits = [](size_t number) {
    const auto text = std::to_string(number);
    return std::string(text.size() < 5 ? 5 - text.size() : 0, '0') + text;
  };
  return c10::str(stem, "-", digits(index + 1), "-of-", digits(count), ".safetensors");
}

// As transformers writes it: two spaces, ASCII, sorted, a newline at the end.
std::string index_text(
    const std::vector<std::vector<const Entry*>>& shards, const std::vector<std::string>& names) {
  int64_t total = 0;
  std::string map;
  for (size_t i = 0; i < shards.size(); ++i) {
    for (const Entry* entry : shards[i]) {
      total += entry_bytes(*entry);
      map += c10::str(
          map.empty() ? "" : ",\n", "    ", json_text(entry->name, true), ": ",
          json_text(names[i], true));
    }
  }
  return c10::str(
      "{\n  \"metadata\": {\n    \"total_size\": ", total, "\n  },\n  \"weight_map\": {\n", map,
      "\n  }\n}\n");
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

}  // namespace

void write_safetensors(
    const fs::path& path, const std::vector<Entry>& entries, const Source& source) {
  StagedFile file(path, stored_entries(entries));
  file.fill(source);
  file.commit();
}

void write_safetensors(
    const fs::path& path, const std::vector<std::pair<std::string, at::Tensor>>& tensors) {
  std::vector<Entry> entries;
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : tensors) {
    require<InternalError>(tensor.defined(), "tensor '", name, "' to be written is undefined");
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), ""});
    by_name.emplace(name, tensor);
  }
  write_safetensors(path, entries, [&](const Entry& entry) { return by_name.at(entry.name); });
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
  const bool single = shards.size() == 1;
  std::vector<std::string> names;
  std::vector<StagedFile> staged;
  for (size_t i = 0; i < shards.size(); ++i) {
    names.push_back(single ? stem + ".safetensors" : shard_name(stem, i, shards.size()));
    staged.emplace_back(directory / names.back(), shards[i]);
  }
  for (StagedFile& file : staged) {
    file.fill(source);
  }
  const auto index = directory / (stem + ".safetensors.index.json");
  std::unique_ptr<AtomicFile> staged_index;
  if (!single) {
    const auto text = index_text(shards, names);
    staged_index = std::make_unique<AtomicFile>(index, static_cast<int64_t>(text.size()));
    staged_index->append(text);
    staged_index->sync();
    // Shards of an older run may have the same names: its index must not see some of each.
    const bool mixed = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return fs::exists(directory / name, error);
    });
    if (mixed) {
      remove_file(index);
    }
  }
  for (StagedFile& file : staged) {
    file.commit();
  }
  if (staged_index) {
    staged_index->commit();
    names.push_back(index.filename().string());
  }
  for (const auto& file : stale_files(directory, stem, names)) {
    remove_file(file);
  }
  return names;
}

}  // namespace theseus::checkpoint
