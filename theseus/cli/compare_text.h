#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace theseus::cli {

// The table of 'theseus compare' as Markdown: rows are methods, columns settings.
std::string compare_markdown(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
