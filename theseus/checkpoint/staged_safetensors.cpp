#include "theseus/checkpoint/staged_safetensors.h"

#include <algorithm>
#include <map>
#include <string_view>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/checkpoint/dtype.h"
#include "theseus/checkpoint/tensor_view.h"

namespace theseus::checkpoint {
namespace {

std::string where(const Entry& entry) {
  return c10::str("tensor '", entry.name, "' to be written");
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
        ",", json_string(entry->name, false), R"(:{"dtype":")",
        dtype_word(entry->dtype, where(*entry)), R"(","shape":[)", c10::Join(",", entry->shape),
        R"(],"data_offsets":[)", offset, ",", end, "]}");
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

}  // namespace

int64_t entry_bytes(const Entry& entry) {
  const auto elements = checked_elements(entry.shape);
  require<InternalError>(
      elements.has_value(), where(entry), ": impossible shape [", c10::Join(", ", entry.shape),
      "]");
  return *elements * static_cast<int64_t>(c10::elementSize(entry.dtype));
}

std::string json_string(const std::string& text, bool ascii) {
  try {
    return nlohmann::json(text).dump(-1, ' ', ascii);
  } catch (const nlohmann::json::exception&) {
    throw InputError(c10::str("the tensor name '", text, "' is not UTF-8"));
  }
}

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

StagedSafetensors::StagedSafetensors(
    const std::filesystem::path& path, std::vector<const Entry*> entries, bool synced)
    : entries_(std::move(entries)), synced_(synced) {
  sort_as_stored(entries_);
  const auto text = header(entries_);
  auto end = static_cast<int64_t>(text.size());
  for (const Entry* entry : entries_) {
    open_[entry] = end;
    end += entry_bytes(*entry);
  }
  file_ = std::make_unique<AtomicFile>(path, synced ? end : 0);
  file_->append(text);
}

void StagedSafetensors::fill(const Source& source) {
  for (const Entry* entry : entries_) {
    put(*entry, source(*entry));
  }
}

void StagedSafetensors::commit() {
  require<InternalError>(open_.empty(), open_.size(), " tensors were not written");
  synced_ ? file_->commit() : file_->commit_unsynced();
}

void StagedSafetensors::put(const Entry& entry, const at::Tensor& given) {
  const auto place = open_.find(&entry);
  require<InternalError>(
      place != open_.end(), where(entry), " is written twice, or not of this file");
  require<InternalError>(
      given.defined() && given.layout() == at::kStrided && !given.is_meta(), where(entry),
      " has no values: it is undefined, sparse or on the meta device");
  require<InternalError>(
      given.sizes() == entry.shape && given.scalar_type() == entry.dtype, where(entry), " is ",
      given.scalar_type(), " ", given.sizes(), " where ", entry.dtype, " [",
      c10::Join(", ", entry.shape), "] was announced");
  const auto values = given.detach().to(at::kCPU).resolve_neg().contiguous();
  file_->write_at(place->second, values.data_ptr(), values.nbytes());
  open_.erase(place);
  if (open_.empty() && synced_) {
    file_->sync();
  }
}

}  // namespace theseus::checkpoint
