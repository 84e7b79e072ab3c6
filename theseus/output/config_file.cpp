#include "theseus/output/config_file.h"

#include <set>

#include <nlohmann/json.hpp>

#include "theseus/base/file.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLargestConfig = int64_t{64} << 20;

// transformers calls it torch_dtype, and dtype since version 5; a part of a model, such as text_config, has its own.
void set_dtype(ordered_json& config, const std::string& dtype, std::set<std::string>& replaced) {
  for (auto& [key, value] : config.items()) {
    if (value.is_object()) {
      set_dtype(value, dtype, replaced);
    } else if ((key == "torch_dtype" || key == "dtype") && value.is_string()) {
      if (const auto found = value.get<std::string>(); found != dtype) {
        replaced.insert(found);
        value = dtype;
      }
    }
  }
}

}  // namespace

void edit_config(
    const model::Model& model,
    const fs::path& directory,
    const std::function<void(ordered_json& config)>& edit) {
  const auto& location = model.location();
  const auto& family = find_plugin(model::all_families(), "model family", location.family);
  for (const auto& name : std::set<std::string>{
           std::string(family.config_file), location.config.filename().string()}) {
    std::error_code ignored;
    if (!fs::exists(directory / name, ignored)) {
      continue;
    }
    const auto before = ordered_json::parse(read_text_file(directory / name, kLargestConfig));
    auto config = before;
    edit(config);
    if (config != before) {
      AtomicFile file(directory / name);
      file.append(config.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
      file.commit();
    }
  }
}

std::vector<std::string> set_config_dtype(
    const model::Model& model, const fs::path& directory, const std::string& dtype) {
  std::set<std::string> replaced;
  edit_config(model, directory, [&](ordered_json& config) { set_dtype(config, dtype, replaced); });
  std::vector<std::string> notes;
  for (const auto& word : replaced) {
    notes.push_back(
        c10::str("the output's config says ", dtype, ", as is stored; the target's says ", word));
  }
  return notes;
}

}  // namespace theseus::output
