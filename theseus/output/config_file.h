#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "theseus/model/model.h"

namespace theseus::output {

// Edits the copies of a model's config that lie in `directory`, and writes those that `edit` changed; the
// order of their keys stays.
void edit_config(
    const model::Model& model,
    const std::filesystem::path& directory,
    const std::function<void(nlohmann::ordered_json& config)>& edit);

// Makes those copies name the dtype that is stored beside them ("float32") where they name another: libraries
// read weights in the dtype that the config names. Returns what was corrected, in words.
std::vector<std::string> set_config_dtype(
    const model::Model& model, const std::filesystem::path& directory, const std::string& dtype);

}  // namespace theseus::output
