#include "theseus/checkpoint/checked.h"

#include <map>
#include <optional>

#include <ATen/ATen.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/checkpoint/fingerprint.h"
#include "theseus/checkpoint/staged_safetensors.h"
#include "theseus/checkpoint/tensor_view.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr const char* kChecksum = "checksum";  // a tensor of characters

at::Tensor tensor_of(std::string text) {
  return at::from_blob(text.data(), {static_cast<int64_t>(text.size())}, at::kByte).clone();
}

std::string text_of(const at::Tensor& tensor) {
  const auto bytes = tensor.contiguous();
  return {static_cast<const char*>(bytes.data_ptr()), bytes.nbytes()};
}

}  // namespace

std::string write_checked(
    const fs::path& path,
    const std::vector<std::pair<std::string, at::Tensor>>& tensors,
    bool synced) {
  const auto none = tensor_of(hash_of_text(""));  // as long as every other
  std::vector<Entry> entries = {{kChecksum, at::kByte, none.sizes().vec(), ""}};
  std::map<std::string, at::Tensor> by_name;
  for (const auto& [name, tensor] : tensors) {
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), ""});
    by_name.emplace(name, tensor);
  }
  const auto stored = stored_entries(entries);
  StagedSafetensors file(path, stored, synced);
  ContentHash hash;
  for (const auto* entry : stored) {
    if (entry != entries.data()) {
      const auto values = by_name.at(entry->name).detach().to(at::kCPU).resolve_neg().contiguous();
      add_tensor(hash, entry->name, dtype_word(entry->dtype, entry->name), values);
      file.put(*entry, values);
    }
  }
  const auto checksum = hash.text();
  file.put(entries.front(), tensor_of(checksum));
  file.commit();
  return checksum;
}

Checkpoint open_checked(const fs::path& path, const std::string& expected) {
  std::error_code ignored;
  require(
      fs::is_regular_file(path, ignored), "the unfinished work is damaged: ", path.string(),
      " is gone; --fresh starts anew");
  std::optional<Checkpoint> file;
  std::string noted;
  try {
    file.emplace(Checkpoint::open(path));
    if (file->find(kChecksum) != nullptr) {
      noted = text_of(file->tensor(kChecksum));
      file->leave_out(kChecksum);
    }
  } catch (const InputError&) {
    noted.clear();  // what is no such file has no content to compare
  }
  require(
      !noted.empty() && noted == fingerprint(*file) && (expected.empty() || noted == expected),
      "the unfinished work is damaged: the content of ", path.string(),
      " is not what its checksum says; --fresh starts anew");
  return std::move(*file);
}

}  // namespace theseus::checkpoint
