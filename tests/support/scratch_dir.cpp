#include "tests/support/scratch_dir.h"

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

void write_bytes(const std::filesystem::path& path, std::string_view content) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(content.data(), std::ssize(content)).flush()) {
    throw std::runtime_error("cannot write " + path.string());
  }
}

std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace theseus::tests
