#include "tests/support/scratch_dir.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace theseus::tests {

ScratchDir::ScratchDir() {
  auto name = (std::filesystem::temp_directory_path() / "theseus_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a scratch directory " + name);
  }
  path_ = name;
}

ScratchDir::~ScratchDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path ScratchDir::file(std::string_view name, std::string_view content) const {
  const auto result = path_ / name;
  std::filesystem::create_directories(result.parent_path());
  write_bytes(result, content);
  return result;
}

// Not std::ofstream: beside pip's libtorch 2.11 its constructor crashed.
void write_bytes(const std::filesystem::path& path, std::string_view content) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  const bool whole =
      file != nullptr && std::fwrite(content.data(), 1, content.size(), file) == content.size();
  if (file == nullptr || std::fclose(file) != 0 || !whole) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace theseus::tests
