#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace theseus::cli {

// A plan for people: what happens to the parameters (equal rows of all blocks as one, unless
// `every`), how blocks correspond, what it costs.
std::string plan_text(const nlohmann::ordered_json& plan, bool every);

// What a transport or an alignment did, in a few lines.
std::string result_text(const nlohmann::ordered_json& record, const std::string& out);

}  // namespace theseus::cli
