#include "theseus/output/work_directory.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/output/text_file.h"

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
  return fs::exists(directory / kRecordFile, ignored) ||
         fs::exists(directory / "alignment.json", ignored);
}

void require_free(const fs::path& out, bool fresh) {
  std::error_code error;
  const bool exists = fs::exists(fs::symlink_status(out, error));
  require(
      !exists || (fresh && is_ours(out)), "--out: ", out.string(),
      " exists; choose another name, or remove it",
      exists && is_ours(out) ? " (--fresh replaces an earlier output)"
      : exists && fresh      ? " (--fresh replaces only what theseus wrote)"
                             : "");
}

std::string shown(const nlohmann::json& value) {
  return value.is_null()     ? "not given"
         : value.is_string() ? value.get<std::string>()
                             : value.dump();
}

// In what `now` is another job than `before` and what to do about it, for a message.
std::string difference(const std::string& before, const std::string& now) {
  constexpr const char* kRepeat =
      "; repeat that command to finish it, or give --fresh to start over";
  constexpr const char* kFresh = "; give --fresh to start over";
  const auto was = nlohmann::json::parse(before, nullptr, /*allow_exceptions=*/false);
  const auto is = nlohmann::json::parse(now, nullptr, /*allow_exceptions=*/false);
  if (!was.is_object() || !is.is_object()) {
    return c10::str("it cannot be read", kFresh);
  }
  const auto find = [](const nlohmann::json& from, const std::string& key) {
    return from.contains(key) ? from.at(key) : nlohmann::json();
  };
  const auto given = find(was, "options"), gives = find(is, "options");
  for (const auto& options : {given, gives}) {
    for (const auto& [name, value] : options.items()) {
      if (find(given, name) != find(gives, name)) {
        return c10::str(
            name, " was ", shown(find(given, name)), " and is now ", shown(find(gives, name)),
            kRepeat);
      }
    }
  }
  for (const char* key : {"version", "threads", "processes"}) {
    if (find(was, key) != find(is, key)) {
      return c10::str(
          key, " was ", shown(find(was, key)), " and is now ", shown(find(is, key)), kRepeat);
    }
  }
  for (const auto& input : find(is, "inputs")) {
    const auto& inputs = find(was, "inputs");
    if (std::find(inputs.begin(), inputs.end(), input) == inputs.end()) {
      const bool file = input.size() > 2;  // with its size and time
      return c10::str(
          shown(input.at(0)), " has changed since", file ? ", or was only touched" : "", kFresh);
    }
  }
  return c10::str("its inputs have changed", kFresh);
}

// A process that was killed early leaves the lock alone.
bool is_work(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / "job.json", ignored) || fs::exists(directory / "lock", ignored);
}

}  // namespace

nlohmann::ordered_json stamps_of(std::vector<fs::path> paths) {
  std::sort(paths.begin(), paths.end());
  auto stamps = nlohmann::ordered_json::array();
  for (const auto& path : paths) {
    std::error_code ignored;
    if (!path.empty() && fs::is_regular_file(path, ignored)) {
      stamps.push_back(
          {fs::weakly_canonical(path).string(), fs::file_size(path),
           fs::last_write_time(path).time_since_epoch().count()});
    }
  }
  return stamps;
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    entries.push_back(entry.path());
  }
  return entries;
}

WorkDirectory::WorkDirectory(const fs::path& out)
    : out_(without_slash(out)), path_(out_.string() + ".partial"), staged_(path_ / "output") {}

// Delegating, so that the destructor runs when this throws.
WorkDirectory::WorkDirectory(const fs::path& out, const std::string& job, bool fresh)
    : WorkDirectory(out) {
  std::error_code error;
  require(
      out_.has_filename() && out_ != "-", "--out: '", out.string(), "' does not name a directory");
  const auto parent = out_.has_parent_path() ? out_.parent_path() : fs::path(".");
  require(fs::is_directory(parent, error), "--out: there is no directory ", parent.string());
  require_free(out_, fresh);
  require(
      !fs::exists(path_, error) || fs::is_empty(path_, error) || is_work(path_),
      "--out: ", path_.string(),
      " is where unfinished work would lie, and it holds something else");
  fs::create_directory(path_, error);
  require(!error, "--out: cannot make ", path_.string(), ": ", error.message());
  take_lock();
  require_free(out_, fresh);  // again: the process that had the lock may have finished just now
  const auto job_file = path_ / "job.json";
  resumed_ = fs::exists(job_file, error) && holds_work() && !fresh;
  if (resumed_) {
    const auto before = read_text_file(job_file, kLongestJob);
    require(
        before == job, "--out: ", path_.string(),
        " holds the unfinished work of another command: ", difference(before, job));
  } else {
    for (const auto& entry : fs::directory_iterator(path_)) {
      if (entry.path() != path_ / "lock") {
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

void WorkDirectory::take_lock() {
  const auto lock = path_ / "lock";
  lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  require(
      lock_ >= 0, "--out: cannot write in ", path_.string(), ": ",
      std::generic_category().message(errno));
  // The process before us removes the file when it is done: then the lock on it means nothing.
  struct stat opened = {}, there = {};
  const bool alone = ::flock(lock_, LOCK_EX | LOCK_NB) == 0 && ::fstat(lock_, &opened) == 0 &&
                     ::stat(lock.c_str(), &there) == 0 && opened.st_ino == there.st_ino;
  if (!alone) {
    ::close(lock_);
    lock_ = -1;
    throw InputError(c10::str(
        "--out: another process is working on ", out_.string(),
        "; wait until it is done, or choose another name"));
  }
}

bool WorkDirectory::holds_work() const {
  return std::any_of(std::begin(kWorkFiles), std::end(kWorkFiles), [&](const char* name) {
    std::error_code ignored;
    return fs::exists(path_ / name, ignored);
  });
}

WorkDirectory::~WorkDirectory() {
  if (lock_ < 0) {
    return;
  }
  std::error_code ignored;
  if (!(kept_ || resumed_) || !holds_work()) {
    fs::remove_all(path_, ignored);
  }
  ::close(lock_);
}

void WorkDirectory::finish() {
  std::error_code ignored;
  if (fs::exists(out_, ignored)) {
    fs::rename(out_, path_ / "replaced");
  }
  fs::rename(staged_, out_);
  fs::remove_all(path_, ignored);
  ::close(lock_);
  lock_ = -1;
}

}  // namespace theseus::output
