#include "theseus/base/made_files.h"

#include <fcntl.h>
#include <mutex>
#include <sstream>
#include <unistd.h>
#include <vector>

#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestList = 64 << 20;

std::mutex lists_mutex;
std::vector<MadeFiles*> lists;

}  // namespace

MadeFiles::MadeFiles(fs::path directory, fs::path list)
    : directory_(std::move(directory)), list_(std::move(list)), names_(read(list_)) {
  const std::lock_guard lock(lists_mutex);
  lists.push_back(this);
}

MadeFiles::~MadeFiles() {
  const std::lock_guard lock(lists_mutex);
  std::erase(lists, this);
}

std::set<std::string> MadeFiles::read(const fs::path& list) {
  std::set<std::string> names;
  std::error_code ignored;
  if (fs::is_regular_file(fs::symlink_status(list, ignored))) {
    std::istringstream text(read_text_file(list, kLongestList));
    for (std::string name; std::getline(text, name);) {
      names.insert(name);
    }
  }
  return names;
}

void MadeFiles::add(const fs::path& path) {
  const auto name = path.lexically_relative(directory_);
  if (name.empty() || *name.begin() == ".." || !name.has_parent_path() ||
      !names_.insert(name.generic_string()).second) {
    return;
  }
  const int descriptor = ::open(list_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const auto end = descriptor < 0 ? 0 : ::lseek(descriptor, 0, SEEK_END);
  char last = '\n';  // else the line was cut off, and the next name must not become a part of it
  const bool torn = end > 0 && ::pread(descriptor, &last, 1, end - 1) == 1 && last != '\n';
  std::string line = torn ? "\n" : "";
  line += name.generic_string() + "\n";
  const auto size = static_cast<ssize_t>(line.size());
  const bool noted = descriptor >= 0 && ::write(descriptor, line.data(), line.size()) == size &&
                     ::fsync(descriptor) == 0;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  require(noted, "cannot write ", list_.string());
}

void note_made(const fs::path& path) {
  const std::lock_guard lock(lists_mutex);
  for (auto* list : lists) {
    list->add(path);
  }
}

}  // namespace theseus
