#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace theseus::cli {

// The curve of 'theseus sweep', a line for each strength, and the best.
std::string curve_text(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
