#include "theseus/output/side_files.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/made_files.h"
#include "theseus/base/units.h"
#include "theseus/checkpoint/tensor_file.h"
#include "theseus/output/layout.h"
#include "theseus/output/sentence_head.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

// Weights of other frameworks: they would be the model before the change.
constexpr std::string_view kOtherWeights[] = {
    ".h5",     ".hdf5", ".msgpack", ".onnx",   ".onnx_data", ".gguf",    ".ggml",
    ".ot",     ".npz",  ".npy",     ".tflite", ".pb",        ".mlmodel", ".pkl",
    ".engine", ".nemo", ".orbax",   ".keras",  ".params"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter);
  });
  return text;
}

bool holds_weights(const std::string& name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  const auto formats = checkpoint::all_formats();
  return std::any_of(std::begin(kOtherWeights), std::end(kOtherWeights), ends) ||
         std::any_of(formats.begin(), formats.end(), [&](const auto& format) {
           const auto& extensions = format.object->extensions;
           return std::any_of(extensions.begin(), extensions.end(), ends);
         });
}

bool is_wanted(const std::string& spelled) {
  const auto name = lower(spelled);
  return !name.starts_with('.') && name != "readme.md" && name != "adapter_config.json" &&
         !name.ends_with(".index.json") && !holds_weights(name);
}

bool same_directory(const fs::path& left, const fs::path& right) {
  const auto named = [](const fs::path& path) { return path.empty() ? fs::path(".") : path; };
  std::error_code ignored;
  return fs::equivalent(named(left), named(right), ignored);
}

struct Candidates {
  std::map<std::string, fs::path> files;  // name in the output -> where it is
  std::vector<std::string> left_out;
};

void add_file(const fs::directory_entry& entry, const std::string& name, Candidates& found) {
  std::error_code error;
  const auto status = entry.status(error);
  if (!fs::is_regular_file(status)) {
    found.left_out.push_back(
        name + (fs::exists(status) ? ": not a regular file" : ": the link leads nowhere"));
    return;
  }
  const auto size = static_cast<int64_t>(entry.file_size(error));
  if (error || size > kLargestSideFile) {
    found.left_out.push_back(
        c10::str(name, ": ", error ? error.message() : bytes_text(size) + " are too large"));
    return;
  }
  found.files[name] = entry.path();
}

// What sentence-transformers keeps of a model beside the transformer: how it pools, a last linear layer. The
// weights among it are no part of what is changed.
void add_modules(const fs::path& directory, Candidates& found) {
  for (const auto& module : sentence_modules(directory)) {
    std::error_code error;
    if (module.path.empty() || !fs::is_directory(directory / module.path, error)) {
      continue;
    }
    const fs::directory_iterator entries(directory / module.path, error);
    require(!error, "cannot list ", (directory / module.path).string(), ": ", error.message());
    for (const auto& entry : entries) {
      if (!entry.is_directory(error)) {
        add_file(entry, module.path + "/" + entry.path().filename().string(), found);
      }
    }
  }
}

Candidates candidates(const model::Model& target) {
  const auto& location = target.location();
  Candidates found;
  const auto directory = directory_of(location);
  if (!directory.empty()) {
    std::error_code error;
    const fs::directory_iterator entries(directory, error);
    require(!error, "cannot list ", directory.string(), ": ", error.message());
    for (const auto& entry : entries) {
      const auto name = entry.path().filename().string();
      std::error_code ignored;
      if (is_wanted(name) && !entry.is_directory(ignored)) {
        add_file(entry, name, found);
      }
    }
    add_modules(directory, found);
  }
  const auto& family = find_plugin(model::all_families(), "model family", location.family);
  found.files[std::string(family.config_file)] = location.config;
  found.files[location.config.filename().string()] = location.config;
  std::sort(found.left_out.begin(), found.left_out.end());
  return found;
}

void copy_whole(const fs::path& from, const fs::path& to) {
  with_context("copying " + from.string(), [&] {
    const MappedFile file(from);
    const auto bytes = file.bytes();
    AtomicFile copy(to, static_cast<int64_t>(bytes.size()));
    copy.append(bytes.data(), bytes.size());
    copy.commit();
  });
}

}  // namespace

fs::path directory_of(const model::Location& location) {
  std::error_code ignored;
  if (fs::is_directory(location.weights, ignored)) {
    return location.weights;
  }
  const auto parent = location.weights.parent_path();
  if (!same_directory(parent, location.config.parent_path())) {
    return {};
  }
  return parent.empty() ? fs::path(".") : parent;
}

SideFiles copy_side_files(
    const model::Model& target, const fs::path& directory, const std::set<std::string>& ours) {
  auto found = candidates(target);
  SideFiles result;
  result.left_out = std::move(found.left_out);
  for (const auto& [name, from] : found.files) {
    std::error_code ignored;
    if (ours.contains(name) || fs::exists(fs::symlink_status(directory / name, ignored))) {
      continue;
    }
    note_made((directory / name).parent_path());
    fs::create_directory((directory / name).parent_path(), ignored);
    copy_whole(from, directory / name);
    result.copied.push_back(name);
  }
  return result;
}

std::string hash_of_copied_files(const model::Model& target, const std::set<std::string>& ours) {
  std::string text;
  for (const auto& [name, from] : candidates(target).files) {
    if (!ours.contains(name)) {
      text += name + " " + hash_of_file(from) + "\n";
    }
  }
  return hash_of_text(text);
}

int64_t bytes_of_side_files(const model::Model& target) {
  int64_t sum = 0;
  for (const auto& [name, from] : candidates(target).files) {
    std::error_code error;
    const auto size = fs::file_size(from, error);
    sum += error ? 0 : static_cast<int64_t>(size);
  }
  return sum;
}

}  // namespace theseus::output
