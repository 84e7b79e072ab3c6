#include "theseus/base/temporary_directory.h"

#include <cerrno>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "theseus/base/error.h"

namespace theseus {

namespace fs = std::filesystem;

namespace {

// Whether it is ours, called STEM-PID-LETTERS, and of a process that was killed: it has ended, and nobody holds the lock.
bool is_left(const fs::path& path, const std::string& stem) {
  constexpr size_t kLetters = 6, kLongest = 10;
  const auto name = path.filename().string();
  const auto begin = stem.size() + 1, end = name.rfind('-');
  const auto digits =
      end == std::string::npos || end <= begin ? "" : name.substr(begin, end - begin);
  if (!name.starts_with(stem + "-") || digits.empty() || digits.size() > kLongest ||
      digits.find_first_not_of("0123456789") != std::string::npos ||
      name.size() - end - 1 != kLetters) {
    return false;
  }
  if (::kill(static_cast<pid_t>(std::stoll(digits)), 0) == 0 || errno != ESRCH) {
    return false;
  }
  const int directory =
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat about = {};
  const bool left = directory >= 0 && ::fstat(directory, &about) == 0 &&
                    about.st_uid == ::geteuid() && ::flock(directory, LOCK_EX | LOCK_NB) == 0;
  if (directory >= 0) {
    ::close(directory);
  }
  return left;
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
