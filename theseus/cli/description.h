#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/model.h"
#include "theseus/update/adapter.h"

// What `theseus inspect` says, as JSON: the text form is printed from it, so both say the same.
namespace theseus::cli {

nlohmann::ordered_json describe(const model::Model& model);
nlohmann::ordered_json describe(const update::Adapter& adapter);
// A bare state dict, with why it is not read as a model.
nlohmann::ordered_json describe(const checkpoint::Checkpoint& checkpoint);

// `parameters`: also the table of them.
std::string as_text(const nlohmann::ordered_json& description, bool parameters);

}  // namespace theseus::cli
