#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace theseus::output {

// The record of an output lists every file that was written with it, by its hash. So whatever else lies there
// later, or was changed, is known to be the user's.

// Adds the list of what lies below `directory` to `record`, and writes it there as `name`.
void write_listed(
    const std::filesystem::path& directory,
    const std::string& name,
    nlohmann::ordered_json& record);

// The record in `directory`, and the name of its file; null where there is none that lists files.
struct Listed {
  std::string name;
  nlohmann::ordered_json record;
};
Listed find_listed(const std::filesystem::path& directory);

// What lies below `directory` now and was not written with the record, or has changed since.
std::vector<std::string> not_listed(const std::filesystem::path& directory, const Listed& listed);
// What was written and is not there.
std::vector<std::string> missing(const std::filesystem::path& directory, const Listed& listed);

// Removes what is listed, and the directory, unless it holds something else.
void remove_listed(const std::filesystem::path& directory, const Listed& listed) noexcept;

}  // namespace theseus::output
