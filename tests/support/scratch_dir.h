#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace theseus::tests {

// A directory of its own that is removed with everything in it.
class ScratchDir {
 public:
  ScratchDir();
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  // Writes `content` under `name` and gives the path.
  std::filesystem::path file(std::string_view name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

void write_bytes(const std::filesystem::path& path, std::string_view content);
std::string read_bytes(const std::filesystem::path& path);

}  // namespace theseus::tests
