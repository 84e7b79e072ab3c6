#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace theseus::cli {

// What diagnose found: spaces of one place in all blocks as one row, the distance, the verdict last.
std::string diagnose_text(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
