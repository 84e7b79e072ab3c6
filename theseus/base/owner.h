#pragma once

#include <filesystem>
#include <string_view>

namespace theseus {

// Whether the process that made `path` and locked it (flock) has ended: its number, `process` in digits, is of no process
// here, and on whatever machine it was, nobody holds the lock. `mode`: how it is opened, for open(2). False for what is no
// number.
bool owner_has_ended(const std::filesystem::path& path, std::string_view process, int mode);

}  // namespace theseus
