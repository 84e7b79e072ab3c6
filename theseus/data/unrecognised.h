#pragma once

#include <filesystem>
#include <string>

namespace theseus::data {

// Why no layout takes `words` (a PATH or NAME:PATH), from what is there, and what to try: for an error.
std::string why_unrecognised(const std::string& words);

// Whether nothing lies there, and no table that is named by what comes before ".train.jsonl".
bool is_missing(const std::filesystem::path& path);

// "permission denied" where something lies there that may not be read or listed; else empty.
std::string why_unreadable(const std::filesystem::path& path);

}  // namespace theseus::data
