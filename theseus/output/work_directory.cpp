#include "theseus/output/work_directory.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestJob = 16 << 20;

fs::path without_slash(const fs::path& path) {
  const auto normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

bool is_ours(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "theseus.json", ignored) ||
         fs::exists(directory / "alignment.json", ignored);
}

// Whether there is anything that a later process could go on with.
bool holds_work(const fs::path& directory) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    const auto name = entry.path().filename();
    if (name != "lock" && name != "job.json" && name != "output") {
      return true;
    }
  }
  return false;
}

}  // namespace

WorkDirectory::WorkDirectory(const fs::path& out, const std::string& job, bool fresh)
    : out_(without_slash(out)), path_(out_.string() + ".partial"), staged_(path_ / "output") {
  std::error_code error;
  const auto parent = out_.has_parent_path() ? out_.parent_path() : fs::path(".");
  require(fs::is_directory(parent, error), "--out: there is no directory ", parent.string());
  const bool exists = fs::exists(fs::symlink_status(out_, error));
  require(
      !exists || (fresh && is_ours(out_)), "--out: ", out_.string(),
      " exists; choose another name, or remove it",
      exists && is_ours(out_) ? " (--fresh replaces an earlier output)" : "");
  fs::create_directory(path_, error);
  require(!error, "--out: cannot make ", path_.string(), ": ", error.message());
  const auto lock = path_ / "lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  require(
      lock_ >= 0, "--out: cannot write in ", path_.string(), ": ",
      std::generic_category().message(errno));
  if (::flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock_);
    lock_ = -1;
    throw InputError(c10::str("--out: another process is working on ", out_.string()));
  }
  const auto job_file = path_ / "job.json";
  resumed_ = fs::exists(job_file, error) && holds_work(path_);
  if (resumed_ && !fresh) {
    require(
        read_text_file(job_file, kLongestJob) == job, "--out: ", path_.string(),
        " holds unfinished work of another command or of inputs that have changed; repeat that "
        "command to finish it, or give --fresh to start over");
  }
  if (fresh || !resumed_) {
    resumed_ = false;
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path() != lock) {
        fs::remove_all(entry.path());
      }
    }
    AtomicFile file(job_file);
    file.append(job);
    file.commit();
  }
  fs::remove_all(staged_);
  fs::create_directory(staged_);
}

WorkDirectory::~WorkDirectory() {
  if (lock_ >= 0) {
    if (std::error_code ignored; !holds_work(path_)) {
      fs::remove_all(path_, ignored);  // a refused job leaves nothing behind
    }
    ::close(lock_);
  }
}

void WorkDirectory::finish() {
  std::error_code ignored;
  if (fs::exists(out_, ignored)) {
    fs::rename(out_, path_ / "replaced");
  }
  fs::rename(staged_, out_);
  fs::remove_all(path_, ignored);
}

}  // namespace theseus::output
