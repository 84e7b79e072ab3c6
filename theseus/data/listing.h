#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::data {

// Both are false for what cannot be looked at.
bool is_folder(const std::filesystem::path& path);
bool is_file(const std::filesystem::path& path);

// Names in a folder, sorted by their bytes so that every machine numbers them alike. Hidden ones are left
// out. All throw InputError when the folder cannot be read.
std::vector<std::string> folders_in(const std::filesystem::path& folder);
std::vector<std::string> files_in(const std::filesystem::path& folder);
// Those that end as JPEG, PNG, PPM or PGM files do. Throws InputError for a kind of image that is not read
// (webp, bmp, gif, tiff and others) and for a link that leads nowhere: leaving it out would change the data in silence.
std::vector<std::string> images_in(const std::filesystem::path& folder);
bool names_image(std::string_view name);

// The first of `candidates` below `path` that is there. The second throws InputError that lists them.
std::optional<std::filesystem::path> find_below(
    const std::filesystem::path& path, const std::vector<std::string>& candidates);
std::filesystem::path below(
    const std::filesystem::path& path,
    std::string_view what,
    const std::vector<std::string>& candidates);

// Lines of a small text file in UTF-8, without the blanks around them; blank lines are left out.
std::vector<std::string> lines_of(const std::filesystem::path& file);
std::string_view trimmed(std::string_view text);
std::string lower(std::string_view text);

// What stands where folders had underscores.
std::string spaced(std::string name);

}  // namespace theseus::data
