#include "theseus/model/locate.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/model/family.h"
#include "theseus/update/adapter.h"

namespace theseus::model {
namespace {

namespace fs = std::filesystem;

bool value_matches(std::string_view value, std::string_view pattern) {
  return pattern.ends_with('*') ? value.starts_with(pattern.substr(0, pattern.size() - 1))
                                : value == pattern;
}

std::string known_values() {
  std::string text;
  for (const auto& [name, family] : all_families()) {
    text.append("\n    ").append(name).append(": ").append(family->config_file);
    if (!family->key.empty()) {
      text.append(" with ").append(family->key);
    }
    for (const auto value : family->values) {
      text.append(" ").append(value);
    }
  }
  return text;
}

bool claims(const Family& family, const Json& config) {
  if (family.key.empty()) {
    return true;
  }
  if (!config.has(family.key)) {
    return false;
  }
  const auto value = config.text(family.key);
  return std::any_of(family.values.begin(), family.values.end(), [&](std::string_view pattern) {
    return value_matches(value, pattern);
  });
}

// Every config file in `directory` (or the one given) that some family reads.
std::vector<fs::path> config_files(const fs::path& directory, const fs::path& given) {
  if (!given.empty()) {
    return {given};
  }
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& [name, family] : all_families()) {
    const auto path = directory / family->config_file;
    if (std::find(found.begin(), found.end(), path) == found.end() && fs::exists(path, ignored)) {
      found.push_back(path);
    }
  }
  return found;
}

std::string word_of(const Json& config) {
  for (const char* key : {"model_type", "architecture"}) {
    if (config.has(key)) {
      return c10::str(key, " ", config.dump(key));
    }
  }
  return {};
}

// One row per family that claims one of the config files.
std::vector<Location> claimants(const std::vector<fs::path>& configs, const OpenOptions& options) {
  std::vector<Location> found;
  for (const auto& path : configs) {
    const auto config = Json::parse_file(path);
    const auto before = found.size();
    for (const auto& [name, family] : all_families()) {
      const bool named = options.config.empty() ? path.filename() == family->config_file
                                                : !family->key.empty() || config.has("model_cfg") ||
                                                      config.has("vision_cfg");
      if (named && claims(*family, config) && (options.family.empty() || options.family == name)) {
        found.push_back({.family = std::string(name), .config = path, .weights = {}});
      }
    }
    const bool asked_elsewhere = !options.family.empty() || configs.size() > 1;
    const auto word = word_of(config);
    require(
        found.size() > before || asked_elsewhere, path.string(),
        word.empty() ? " has neither model_type nor architecture"
                     : ": " + word + " is not a known model",
        "; known:", known_values());
  }
  return found;
}

fs::path directory_of(const fs::path& path) {
  std::error_code error;
  const auto status = fs::status(path, error);
  require(
      fs::exists(status), "'", path.string(),
      "': ", error ? error.message() : std::string("no such file or directory"));
  if (fs::is_directory(status)) {
    return path;
  }
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void check_readable(const fs::path& directory) {
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  require(!error, "cannot read the directory ", directory.string(), ": ", error.message());
  require(entries != fs::directory_iterator(), directory.string(), " is an empty directory");
}

}  // namespace

bool has_config(const fs::path& path, const OpenOptions& options) {
  return !config_files(directory_of(path), options.config).empty();
}

Location locate(const fs::path& path, const OpenOptions& options) {
  const auto directory = directory_of(path);
  if (fs::is_directory(path)) {
    check_readable(directory);
  }
  if (!options.family.empty()) {
    find_plugin(all_families(), "model family", options.family);
  }
  require(
      !update::is_adapter(directory) || has_config(path, options), directory.string(),
      " is a PEFT adapter, not a model; give its base model, and this as --adapter");
  const auto configs = config_files(directory, options.config);
  require(
      !configs.empty(), directory.string(),
      " holds no config that tells the model's family; looked for:", known_values());
  auto found = claimants(configs, options);
  require(
      !found.empty(), "no config in ", directory.string(), " is one of a '", options.family,
      "' model");
  if (found.size() > 1) {
    std::string names;
    for (const auto& location : found) {
      names.append("\n    ")
          .append(location.config.filename())
          .append(": ")
          .append(location.family);
    }
    throw InputError(c10::str(
        directory.string(), " can be read as more than one model; choose with --family:", names));
  }
  found.front().weights = path;
  return found.front();
}

}  // namespace theseus::model
