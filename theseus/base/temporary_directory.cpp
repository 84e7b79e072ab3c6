#include "theseus/base/temporary_directory.h"

#include <cerrno>
#include <cstdlib>
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

// Where temporary files belong, and which variable says so; empty: none does.
struct Place {
  fs::path path;
  std::string variable;
};

Place place_of_temporaries() {
  for (const char* name : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') {
      return {value, name};
    }
  }
  return {"/tmp", ""};
}

// Why no directory could be made in it, and what to do.
std::string complaint(const Place& place, int error) {
  std::error_code ignored;
  const auto reason = !fs::exists(place.path, ignored) ? "it does not exist"
                      : !fs::is_directory(place.path, ignored)
                          ? "it is no directory"
                          : std::generic_category().message(error);
  return c10::str(
      "cannot make a temporary directory in ", place.path.string(),
      place.variable.empty() ? "" : c10::str(", which the variable ", place.variable, " names"),
      ": ", reason, "; set ", place.variable.empty() ? "TMPDIR" : place.variable,
      " to a directory that is there and that you may write to");
}

void remove_left(const fs::path& place, const std::string& stem) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(place, ignored)) {
    if (is_left(entry.path(), stem)) {
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

TemporaryDirectory::TemporaryDirectory(const std::string& stem) {
  const auto place = place_of_temporaries();
  remove_left(place.path, stem);
  auto name = (place.path / c10::str(stem, "-", ::getpid(), "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw InputError(complaint(place, errno));
  }
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
