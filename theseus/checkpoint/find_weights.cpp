#include <algorithm>
#include <iterator>
#include <span>
#include <system_error>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/checkpoint/checkpoint.h"

namespace theseus::checkpoint {
namespace {

namespace fs = std::filesystem;

// In the order in which the tools that write them look for them: safetensors before pickles, a
// whole model before an adapter.
constexpr std::string_view kKnownNames[] = {
    "model.safetensors",           "model.safetensors.index.json",
    "open_clip_model.safetensors", "adapter_model.safetensors",
    "pytorch_model.bin",           "pytorch_model.bin.index.json",
    "open_clip_pytorch_model.bin", "adapter_model.bin",
};

std::vector<std::string> list_directory(const fs::path& directory) {
  std::error_code error;
  fs::directory_iterator files(directory, error);
  require(!error, "cannot list ", directory.string(), ": ", error.message());
  std::vector<std::string> names;
  for (const fs::directory_iterator end; files != end; files.increment(error)) {
    names.push_back(files->path().filename().string());
    require(!error, "cannot list ", directory.string(), ": ", error.message());
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool is_weights_name(const std::string& name) {
  const auto formats = all_formats();
  return std::any_of(formats.begin(), formats.end(), [&](const Plugin<Format>& format) {
    const auto& endings = format.object->extensions;
    return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
      return name.size() > ending.size() && name.ends_with(ending) && !name.starts_with('.');
    });
  });
}

std::string join_names(const std::vector<std::string>& names) {
  constexpr size_t kShown = 20;
  std::string result;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    result.append(i == 0 ? "" : ", ").append(printable(names[i]));
  }
  return names.size() > kShown ? c10::str(result, ", ... (", names.size(), " in all)") : result;
}

}  // namespace

bool is_known_weights_name(std::string_view name) {
  return std::find(std::begin(kKnownNames), std::end(kKnownNames), name) != std::end(kKnownNames);
}

fs::path find_weights(const fs::path& directory, const std::vector<std::string>& preferred) {
  const auto names = list_directory(directory);
  require(!names.empty(), directory.string(), " is an empty directory; weights are expected in it");
  std::vector<std::string_view> wanted(preferred.begin(), preferred.end());
  wanted.insert(wanted.end(), std::begin(kKnownNames), std::end(kKnownNames));
  for (const auto name : wanted) {
    if (std::binary_search(names.begin(), names.end(), name)) {
      return directory / name;
    }
  }
  std::vector<std::string> candidates;
  std::copy_if(names.begin(), names.end(), std::back_inserter(candidates), is_weights_name);
  require(
      !candidates.empty(), directory.string(), " holds no weights: expected ",
      c10::Join(", ", std::span(wanted)), " or one file with a weights extension; it has ",
      join_names(names));
  require(
      candidates.size() == 1, directory.string(), " holds several weights files (",
      join_names(candidates), ") and none of the usual names: give the file itself");
  return directory / candidates.front();
}

}  // namespace theseus::checkpoint
