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

// Likewise for a file of unfinished work, with a checksum of its content. Reading throws InputError, which names the
// file and --fresh, when the content is not as it was written. Not `synced`: without waiting for the disk.
void write_checked_json(
    const std::filesystem::path& path, const nlohmann::ordered_json& json, bool synced = true);
nlohmann::ordered_json read_checked_json(const std::filesystem::path& path);

}  // namespace theseus::output
