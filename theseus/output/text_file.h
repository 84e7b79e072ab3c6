#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace theseus::output {

constexpr const char* kRecordFile = "theseus.json";
constexpr const char* kAlignmentRecord = "alignment.json";  // of what 'theseus align' writes
constexpr const char* kRecipeFile = "recipe.yaml";

// Whole or not at all; what was there is replaced.
void write_text(const std::filesystem::path& path, const std::string& text);
void write_json(const std::filesystem::path& path, const nlohmann::ordered_json& json);

}  // namespace theseus::output
