#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace theseus::evaluate {

// Makes `directory` the place of the comparison that `identity` describes, or goes on there with the same one. One of
// something else that measured nothing yet gives way to it, any other one only when `fresh`. Throws InputError.
void take_place(
    const std::filesystem::path& directory, const nlohmann::ordered_json& identity, bool fresh);

// Whole or not at all, with a hash that tells whether somebody has changed it since; the record without that. Null where
// there is none, discarded where it is no JSON.
nlohmann::ordered_json read_record(const std::filesystem::path& path);
// The same of a file that is there. Throws InputError when it is not as it was written; `cure` says what to do then.
nlohmann::ordered_json read_whole(const std::filesystem::path& path, const std::string& cure);
void write_record(const std::filesystem::path& path, const nlohmann::ordered_json& json);
// Whether what lies at `path`, a record or what a comparison wrote, is as it was written, so that it may go.
bool is_as_written(const std::filesystem::path& path);

}  // namespace theseus::evaluate
