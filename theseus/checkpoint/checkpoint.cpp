#include "theseus/checkpoint/checkpoint.h"

#include <algorithm>
#include <numeric>
#include <system_error>
#include <utility>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/index.h"
#include "theseus/machine/suggest.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIndexEnding = ".index.json";

std::string known_formats() {
  std::string result;
  for (const auto& format : all_formats()) {
    result.append(result.empty() ? "" : ", ").append(format.name).append(" (");
    result.append(c10::Join(" ", format.object->extensions)).append(")");
  }
  return result;
}

const Plugin<Format>* format_by_extension(const fs::path& path) {
  const std::string extension = path.extension().string();
  for (const auto& format : all_formats()) {
    const auto& known = format.object->extensions;
    if (std::find(known.begin(), known.end(), extension) != known.end()) {
      return &format;
    }
  }
  return nullptr;
}

const Plugin<Format>* format_by_content(std::span<const std::byte> bytes) {
  for (const auto& format : all_formats()) {
    if (format.object->recognises(bytes)) {
      return &format;
    }
  }
  return nullptr;
}

// The name decides, so that a damaged file is reported as what it was meant to be.
const Format& choose_format(const MappedFile& file) {
  const auto& path = file.path();
  const auto bytes = file.bytes();
  require(
      !as_text(bytes).starts_with("version https://git-lfs"), path.string(),
      " is a Git LFS pointer, not the weights: fetch them with `git lfs pull`");
  const auto* by_name = format_by_extension(path);
  const auto* by_content = format_by_content(bytes);
  require(!bytes.empty(), path.string(), " is not a checkpoint: the file is empty");
  require(
      by_name != nullptr || by_content != nullptr, path.string(),
      " is not a checkpoint: it begins with '", printable(as_text(bytes), 32),
      "'; known formats are ", known_formats());
  require(
      by_name == nullptr || by_content == nullptr || by_name == by_content, path.string(),
      " is named like ", by_name ? by_name->name : "", " but begins like ",
      by_content ? by_content->name : "", ": rename it to end in ",
      by_content ? by_content->object->extensions.front() : "");
  return *(by_name != nullptr ? by_name : by_content)->object;
}

std::string nearest_names(std::string_view name, const std::vector<TensorInfo>& tensors) {
  constexpr size_t kShown = 3;
  constexpr size_t kLongest = 200;  // comparing takes the product of both lengths
  std::vector<std::pair<size_t, std::string_view>> ranked;
  ranked.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) {
    if (tensor.name.size() > kLongest) {
      continue;
    }
    ranked.emplace_back(machine::edits(name, tensor.name), tensor.name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::string result;
  ranked.resize(std::min(kShown, ranked.size()));
  for (const auto& [distance, near] : ranked) {
    result.append(result.empty() ? "" : ", ").append(printable(near));
  }
  return result;
}

}  // namespace

Checkpoint Checkpoint::open(const fs::path& path, const std::vector<std::string>& preferred) {
  std::error_code error;
  const auto status = fs::status(path, error);
  require(
      fs::exists(status), "cannot open '", path.string(),
      "': ", error ? error.message() : std::string("no such file or directory"));
  const fs::path file = fs::is_directory(status) ? find_weights(path, preferred) : path;
  Checkpoint result;
  if (file.string().ends_with(kIndexEnding)) {
    result.add_index(file);
  } else {
    result.add_file(file);
  }
  result.sort();
  return result;
}

void Checkpoint::add_file(const fs::path& path) {
  auto file = std::make_shared<const MappedFile>(path);
  const Format& format = choose_format(*file);
  std::shared_ptr<const TensorFile> reader = format.open(std::move(file));
  size_t position = 0;
  for (const TensorInfo& info : reader->tensors()) {
    tensors_.push_back(info);
    tensors_.back().file = files_.size();
    positions_.push_back(position++);
  }
  const auto note = reader->note();
  if (!note.empty()) {
    notes_.push_back(path.filename().string() + ": " + note);
  }
  readers_.push_back(std::move(reader));
  files_.push_back(path);
}

void Checkpoint::add_index(const fs::path& path) {
  const ShardIndex index = read_index(path);
  for (const auto& [shard, names] : index.shards) {
    add_file(path.parent_path() / shard);
    check_shard(index, shard, readers_.back()->tensors());
  }
}

void Checkpoint::sort() {
  std::vector<size_t> order(tensors_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [this](size_t left, size_t right) {
    return tensors_[left].name < tensors_[right].name;
  });
  std::vector<TensorInfo> tensors;
  std::vector<size_t> positions;
  for (const size_t i : order) {
    tensors.push_back(std::move(tensors_[i]));
    positions.push_back(positions_[i]);
  }
  tensors_ = std::move(tensors);
  positions_ = std::move(positions);
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto found = std::lower_bound(
      tensors_.begin(), tensors_.end(), name,
      [](const TensorInfo& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found == tensors_.end() || found->name != name ? nullptr : &*found;
}

const TensorInfo& Checkpoint::info(std::string_view name) const {
  const TensorInfo* found = find(name);
  if (found == nullptr) {
    throw InputError(c10::str(
        files_.front().string(), files_.size() > 1 ? " and its other shards have" : " has",
        " no tensor '", name, "'",
        tensors_.empty() ? "; there are none" : "; the nearest names are ",
        nearest_names(name, tensors_)));
  }
  return *found;
}

at::Tensor Checkpoint::tensor(std::string_view name) const {
  const TensorInfo& found = info(name);
  return readers_[found.file]->tensor(positions_[static_cast<size_t>(&found - tensors_.data())]);
}

void Checkpoint::forget(std::string_view name) const {
  const TensorInfo& found = info(name);
  readers_[found.file]->forget(positions_[static_cast<size_t>(&found - tensors_.data())]);
}

void Checkpoint::leave_out(std::string_view name) {
  if (const TensorInfo* found = find(name); found != nullptr) {
    const auto place = found - tensors_.data();
    tensors_.erase(tensors_.begin() + place);
    positions_.erase(positions_.begin() + place);
  }
}

int64_t Checkpoint::bytes() const {
  return std::accumulate(
      tensors_.begin(), tensors_.end(), int64_t{0},
      [](int64_t sum, const TensorInfo& tensor) { return sum + tensor.bytes; });
}

}  // namespace theseus::checkpoint
