#include "theseus/base/temporary_directory.h"

#include <stdlib.h>

#include "theseus/base/error.h"

namespace theseus {

namespace fs = std::filesystem;

TemporaryDirectory::TemporaryDirectory(const std::string& stem) {
  auto name = (fs::temp_directory_path() / (stem + "-XXXXXX")).string();
  require(
      ::mkdtemp(name.data()) != nullptr, "cannot make a temporary directory in ",
      fs::temp_directory_path().string(), "; TMPDIR names another one");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace theseus
