#include "theseus/output/layout.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/json.h"
#include "theseus/checkpoint/tensor_view.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".safetensors";
constexpr std::string_view kIndexEnding = ".index.json";

const model::Family& family_of(const model::Model& target) {
  return find_plugin(model::all_families(), "model family", target.location().family);
}

// The weights file or index that Model::open found.
fs::path weights_of(const model::Model& target) {
  const auto& path = target.location().weights;
  std::error_code ignored;
  return fs::is_directory(path, ignored) ? checkpoint::find_weights(path, family_of(target).weights)
                                         : path;
}

// "open_clip_model": of the safetensors file that the family's library looks for first.
std::string stem_of(const model::Family& family) {
  for (const auto& name : family.weights) {
    if (name.ends_with(kExtension)) {
      return name.substr(0, name.size() - kExtension.size());
    }
  }
  return "model";
}

bool are_safetensors(const std::vector<fs::path>& files) {
  return std::all_of(files.begin(), files.end(), [](const fs::path& file) {
    return file.extension() == kExtension;
  });
}

// Names of the files to write, as many as the checkpoint has.
std::vector<std::string> file_names(
    const model::Model& target, const fs::path& weights, bool sharded) {
  const auto& files = target.checkpoint().files();
  if (!are_safetensors(files)) {
    return checkpoint::shard_names(stem_of(family_of(target)), files.size());
  }
  std::vector<std::string> names;
  for (const auto& file : files) {
    names.push_back(
        sharded ? file.lexically_relative(weights.parent_path()).string()
                : file.filename().string());
  }
  return names;
}

std::string index_metadata(const fs::path& index) {
  const auto file = Json::parse_file(index);
  const auto& raw = file.raw();
  return raw.contains("metadata") && raw.at("metadata").is_object() ? raw.at("metadata").dump()
                                                                    : "";
}

// The tensor's stored name, when it is only another name for the memory of `tie.tied_to`.
std::string shared_with(const model::Model& target, const model::Tie& tie) {
  const auto* copy = tie.stored.empty() ? nullptr : target.checkpoint().find(tie.stored);
  for (const auto& parameter : target.architecture().parameters) {
    if (copy == nullptr || parameter.tensor != tie.tied_to) {
      continue;
    }
    const auto& original = target.checkpoint().info(parameter.stored);
    const bool shared =
        !copy->storage.empty() && copy->storage == original.storage && copy->file == original.file;
    return shared ? original.name : "";
  }
  return {};
}

}  // namespace

int64_t ModelLayout::bytes() const {
  int64_t sum = 0;
  for (const auto& entry : entries) {
    if (entry.tied_to.empty()) {
      sum +=
          c10::multiply_integers(entry.shape) * static_cast<int64_t>(c10::elementSize(entry.dtype));
    }
  }
  return sum;
}

ModelLayout layout_of(const model::Model& target) {
  const auto weights = weights_of(target);
  const bool sharded = weights.string().ends_with(kIndexEnding);
  const auto names = file_names(target, weights, sharded);
  std::map<std::string, std::string> shared;  // stored name -> the one that is kept
  for (const auto& tie : target.architecture().ties) {
    shared[tie.stored] = shared_with(target, tie);
  }
  ModelLayout layout;
  for (const auto& info : target.checkpoint().tensors()) {
    layout.files.file_of[info.name] = names.at(info.file);
    const auto tied = shared.find(info.name);
    layout.entries.push_back(
        {.name = info.name,
         .dtype = checkpoint::scalar_type(info.dtype, info.name),
         .shape = info.shape,
         .tied_to = tied == shared.end() ? "" : tied->second});
  }
  if (sharded) {
    layout.files.index = are_safetensors(target.checkpoint().files())
                             ? weights.filename().string()
                             : stem_of(family_of(target)) + ".safetensors.index.json";
    layout.files.metadata = index_metadata(weights);
  }
  return layout;
}

}  // namespace theseus::output
