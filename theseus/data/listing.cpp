#include "theseus/data/listing.h"

#include <algorithm>
#include <array>
#include <span>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/utf8.h"

namespace theseus::data {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestList = int64_t{256} << 20;

std::vector<std::string> names_in(const fs::path& folder, bool (*wanted)(const fs::path&)) {
  std::vector<std::string> result;
  std::error_code error;
  auto entry = fs::directory_iterator(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const auto name = entry->path().filename().string();
    if (!name.starts_with('.') && wanted(entry->path())) {
      result.push_back(name);
    }
  }
  require(!error, "cannot list ", folder.string(), ": ", error.message());
  std::ranges::sort(result);
  return result;
}

bool leads_nowhere(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(path, error) && !fs::exists(path, error);
}

bool ends_as(std::string_view name, std::span<const std::string_view> endings) {
  const auto small = lower(name);
  return std::ranges::any_of(endings, [&](std::string_view end) { return small.ends_with(end); });
}

}  // namespace

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::vector<std::string> folders_in(const fs::path& folder) {
  return names_in(folder, is_folder);
}

std::vector<std::string> files_in(const fs::path& folder) {
  return names_in(folder, is_file);
}

bool names_image(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kRead = {
      ".jpg", ".jpeg", ".png", ".ppm", ".pgm"};
  return ends_as(name, kRead);
}

std::vector<std::string> images_in(const fs::path& folder) {
  static constexpr std::array<std::string_view, 14> kNotRead = {
      ".webp", ".bmp",  ".gif", ".tif", ".tiff", ".heic", ".heif",
      ".avif", ".jfif", ".jpe", ".jp2", ".jxl",  ".pbm",  ".pnm"};
  auto names = files_in(folder);
  for (const auto& name : names_in(folder, leads_nowhere)) {
    require(
        !names_image(name), (folder / printable(name)).string(),
        ": this link leads nowhere; an image is expected");
  }
  for (const auto& name : names) {
    require(
        !ends_as(name, kNotRead), (folder / printable(name)).string(),
        ": this kind of image is not read; convert it to PNG, JPEG or PPM");
  }
  std::erase_if(names, [](const std::string& name) { return !names_image(name); });
  return names;
}

std::optional<fs::path> find_below(
    const fs::path& path, const std::vector<std::string>& candidates) {
  for (const auto& candidate : candidates) {
    auto whole = candidate.empty() ? path : path / candidate;
    if (is_file(whole) || is_folder(whole)) {
      return whole;
    }
  }
  return std::nullopt;
}

fs::path below(
    const fs::path& path, std::string_view what, const std::vector<std::string>& candidates) {
  const auto found = find_below(path, candidates);
  require(
      found.has_value(), path.string(), " has no ", what, "; looked for ",
      joined(candidates, candidates.size()));
  return *found;
}

std::vector<std::string> lines_of(const fs::path& file) {
  const auto bytes = read_text_file(file, kLongestList);
  const auto text = utf8_text(bytes, file.string());
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = trimmed(text.substr(begin, end - begin));
    if (!line.empty()) {
      lines.emplace_back(line);
    }
    begin = end + 1;
  }
  return lines;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n\v\f";
  const auto begin = text.find_first_not_of(kBlank);
  return begin == std::string_view::npos
             ? std::string_view()
             : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& character : result) {
    if (character >= 'A' && character <= 'Z') {
      character = static_cast<char>(character - 'A' + 'a');
    }
  }
  return result;
}

std::string spaced(std::string name) {
  std::ranges::replace(name, '_', ' ');
  return name;
}

}  // namespace theseus::data
