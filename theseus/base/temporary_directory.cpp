#include "theseus/base/temporary_directory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "theseus/base/error.h"
#include "theseus/base/owner.h"

namespace theseus {

namespace fs = std::filesystem;

namespace {

// Whether it is ours, called STEM-PID-LETTERS, and of a process that was killed.
bool is_left(const fs::path& path, const std::string& stem) {
  constexpr size_t kLetters = 6;
  const auto name = path.filename().string();
  const auto begin = stem.size() + 1, end = name.rfind('-');
  struct stat about = {};
  return name.starts_with(stem + "-") && end > begin && name.size() - end - 1 == kLetters &&
         ::lstat(path.c_str(), &about) == 0 && about.st_uid == ::geteuid() &&
         owner_has_ended(path, name.substr(begin, end - begin), O_RDONLY | O_DIRECTORY);
}

void remove_left(const std::string& stem) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(fs::temp_directory_path(), ignored)) {
    if (is_left(entry.path(), stem)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& stem) {
  remove_left(stem);
  auto name = (fs::temp_directory_path() / c10::str(stem, "-", ::getpid(), "-XXXXXX")).string();
  require(
      ::mkdtemp(name.data()) != nullptr, "cannot make a temporary directory in ",
      fs::temp_directory_path().string(), "; TMPDIR names another one");
  path_ = name;
  lock_ = ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ::flock(lock_, LOCK_EX | LOCK_NB);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
  ::close(lock_);
}

}  // namespace theseus
