#include "theseus/output/work_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <span>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/interrupts.h"
#include "theseus/base/text.h"
#include "theseus/output/text_file.h"
#include "theseus/output/written.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr size_t kShownNames = 5;
constexpr const char* kFreshReplaces = " (--fresh replaces an earlier output)";

fs::path without_slash(const fs::path& path) {
  const auto normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

// A link to a directory stands for that directory.
fs::path place_of(const fs::path& out) {
  const auto place = without_slash(out);
  std::error_code ignored;
  return fs::is_symlink(place, ignored) && fs::is_directory(place, ignored) ? fs::canonical(place)
                                                                            : place;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool holds_any(const fs::path& directory, std::span<const char* const> names) {
  return std::any_of(
      names.begin(), names.end(), [&](const char* name) { return is_there(directory / name); });
}

bool is_empty_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) && fs::is_empty(path, ignored);
}

// An output takes the place of an empty directory as a whole.
void require_replaceable(const fs::path& out) {
  std::error_code ignored;
  struct stat inside = {}, outside = {};
  const auto parent = out.has_parent_path() ? out.parent_path() : fs::path(".");
  const bool known = ::stat(out.c_str(), &inside) == 0 && ::stat(parent.c_str(), &outside) == 0;
  require(
      known && inside.st_dev == outside.st_dev && !fs::equivalent(out, ".", ignored),
      "--out: ", out.string(),
      " cannot be replaced by the output: a disk is mounted there, or the command runs in it; name "
      "a directory in it");
}

bool is_temporary(const fs::path& path) {
  return path.filename().string().starts_with('.') && path.extension() == ".tmp";
}

// Whether --fresh would replace what is there, in words that end a sentence.
std::string fresh_words(const fs::path& out, const Listed& listed) {
  if (listed.record.is_null()) {
    return "";
  }
  const auto others = not_listed(out, listed);
  return others.empty() ? kFreshReplaces
                        : " (--fresh replaces only what theseus wrote, and this is not, or has "
                          "changed since: " +
                              joined(others, kShownNames) + ")";
}

// Work is saved in full precision: what the output is rounded to can be chosen again.
ordered_json without_output_dtype(ordered_json job) {
  if (job.is_object() && job.contains("options")) {
    job["options"].erase("output-dtype");
  }
  return job;
}

void add_once(const ordered_json& value, ordered_json& list) {
  list = list.is_array() ? list : ordered_json::array();
  if (!value.is_null() && std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

// What takes the place of an empty directory gets its mode and, where the system lets us, its group.
void take_access(const fs::path& from, const fs::path& to) {
  struct stat there = {};
  if (::stat(from.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) {
    const bool owned = ::chown(to.c_str(), there.st_uid, there.st_gid) == 0 ||
                       ::chown(to.c_str(), static_cast<uid_t>(-1), there.st_gid) == 0;
    // The group's rights are meant for that group; moving the directory takes the owner's.
    const auto mode = (there.st_mode & 07777) | S_IRWXU;
    ::chmod(to.c_str(), owned ? mode : mode & ~(S_ISGID | S_ISUID));
  }
}

// Whether it says that the work is of this job, or there is no such file.
bool is_of_job(const fs::path& file, const ordered_json& job) {
  std::error_code ignored;
  try {
    return !fs::exists(file, ignored) || comparable(part_of(read_checked_json(file), "job")) == job;
  } catch (const InputError&) {
    return false;  // it is damaged
  }
}

// Both are there afterwards, or neither has moved; false where the file system cannot.
bool exchanged(const fs::path& one, const fs::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

fs::path work_path(const fs::path& out) {
  return place_of(out).string() + ".partial";
}

void require_free(const fs::path& given, bool fresh) {
  const auto out = place_of(given);
  if (!is_there(out)) {
    return;
  }
  if (is_empty_directory(out)) {
    require_replaceable(out);
    return;
  }
  const auto listed = find_listed(out);
  const auto words = "--out: " + out.string() + " exists; choose another name, or remove it";
  require(fresh, words, fresh ? "" : fresh_words(out, listed));
  require(
      !listed.record.is_null(), words,
      " (--fresh replaces only what theseus wrote, and no record there lists that)");
  const auto others = not_listed(out, listed);
  require(
      others.empty(), "--out: ", out.string(),
      " holds what theseus did not write, or that has changed since: ", joined(others, kShownNames),
      "; --fresh replaces only what theseus wrote: move this away, or choose another name");
}

WorkDirectory::WorkDirectory(const fs::path& out)
    : out_(place_of(out)), path_(work_path(out)), staged_(path_ / "output") {}

// Delegating, so that the destructor runs when this throws.
WorkDirectory::WorkDirectory(const fs::path& out, Identity identity, bool fresh)
    : WorkDirectory(out) {
  identity_ = std::move(identity);
  fresh_ = fresh;
  std::error_code error;
  require(
      out_.has_filename() && out_ != "-", "--out: '", out.string(), "' does not name a directory");
  const auto parent = out_.has_parent_path() ? out_.parent_path() : fs::path(".");
  require(fs::is_directory(parent, error), "--out: there is no directory ", parent.string());
  require_free(out_, fresh);
  const bool link = fs::is_symlink(path_, error);
  require(
      !is_there(path_) || (!link && fs::is_directory(path_, error)), "--out: ", path_.string(),
      " is where unfinished work would lie, and it is no directory");
  const auto strangers = not_of_work(path_, fresh);
  require(
      strangers.empty(), "--out: ", path_.string(),
      " is where unfinished work would lie, and it holds what is of an earlier build, or not "
      "ours: ",
      joined(strangers, kShownNames), damaged_list(path_),
      "; remove it by hand, or choose another name");
  fs::create_directory(path_, error);
  require(!error, "--out: cannot make ", path_.string(), ": ", error.message());
  take_lock();
  require_free(out_, fresh);  // again: the process that had the lock may have finished just now
  begin();
}

// What an earlier process left goes, unless this one can go on with it.
void WorkDirectory::begin() {
  if (!fresh_ && holds_work()) {
    require_whole();
  }
  if (resumed_) {
    const auto found = read_checked_json(path_ / kJobFile);
    find_job();
    require_same(comparable(part_of(found, "job")));
    threads_ = part_of(found, "threads");
    devices_ = part_of(found, "devices");
  }
  if (!resumed_) {
    forget_work();
  }
  for (const auto& entry : entries_of(path_)) {
    if (entry.filename() != kLockFile && (!resumed_ || is_temporary(entry))) {
      fs::remove_all(entry);
    }
  }
  fs::remove_all(staged_);
  made_.emplace(path_, path_ / kMadeFile);
  note_made(staged_);
  fs::create_directory(staged_);
  if (resumed_) {
    identify();
  }
}

void WorkDirectory::require_same(const ordered_json& before) const {
  const auto was = without_output_dtype(before), is = without_output_dtype(job_);
  if (was == is) {
    return;
  }
  const auto [what, of_input] = difference(was, is);
  const auto place = "--out: " + path_.string() + " holds unfinished work ";
  require(
      !of_input, place, "of other inputs: ", what,
      "; give them as they were to finish that work, or --fresh to start over");
  throw InputError(c10::str(
      place, "of another command: ", what,
      "; repeat that command to finish it, or give --fresh to start over"));
}

void WorkDirectory::find_job() {
  const auto found = identity_();
  device_ = part_of(found, "device");
  job_ = comparable(found);
}

void WorkDirectory::identify() {
  if (job_.is_null()) {
    find_job();
  }
  add_once(at::get_num_threads(), threads_);
  add_once(device_, devices_);
  write_checked_json(
      path_ / kJobFile, {{"job", job_}, {"threads", threads_}, {"devices", devices_}});
}

void WorkDirectory::take_lock() {
  const auto lock = path_ / kLockFile;
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
  const auto size = static_cast<ssize_t>(kLockText.size());
  std::string found(kLockText.size(), ' ');  // it may be damaged
  const bool whole = opened.st_size == size &&
                     ::pread(lock_, found.data(), found.size(), 0) == size && found == kLockText;
  require(
      whole || (::pwrite(lock_, kLockText.data(), kLockText.size(), 0) == size &&
                ::ftruncate(lock_, size) == 0),
      "--out: cannot write in ", path_.string(), ": ", std::generic_category().message(errno));
}

bool WorkDirectory::holds_work() const {
  return holds_any(path_, kWorkFiles);
}

// Without what says whose work it is, or how far it has come, it must not go unasked.
void WorkDirectory::require_whole() {
  resumed_ = true;  // so that it stays when it is refused
  const bool job = is_there(path_ / kJobFile);
  const auto place = "the unfinished work is damaged: " + path_.string() + "/";
  require(
      job || !holds_any(path_, kOwnedFiles), place, kJobFile,
      ", which says whose it is, is gone; --fresh starts anew");
  require(
      !is_there(path_ / kWalkSavedFile) || is_there(path_ / kWalkFile) ||
          is_there(path_ / kSolvedFile),
      place, kWalkFile, ", which says how far it has come, is gone; --fresh starts anew");
  resumed_ = job;
}

// A line for the end of a message; empty where nothing is kept.
std::string WorkDirectory::kept_words() const {
  return !kept_ || !holds_work()
             ? ""
             : c10::str(
                   "\n  what was done until it was last saved is kept in ", path_.string(),
                   ": the same command goes on from there, also with another --device, --threads "
                   "or --output-dtype; --fresh starts anew");
}

// Before the rest goes: whoever comes after a kill in between has nothing to go on with.
void WorkDirectory::forget_work() noexcept {
  std::error_code ignored;
  for (const char* name : kWorkFiles) {
    fs::remove(path_ / name, ignored);
  }
}

// The lock goes last: as long as something of ours is there, it says whose it is.
void WorkDirectory::clear() noexcept {
  std::error_code ignored;
  forget_work();
  for (const auto& entry : entries_of(path_)) {
    if (is_of_work(entry) && entry.filename() != kLockFile) {
      fs::remove_all(entry, ignored);
    }
  }
  fs::remove(path_ / kLockFile, ignored);
  fs::remove(path_, ignored);
}

WorkDirectory::~WorkDirectory() {
  if (lock_ < 0) {
    return;
  }
  if (!(kept_ || resumed_) || !holds_work()) {
    clear();
  }
  ::close(lock_);
}

void WorkDirectory::check_result(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error&) {
    give_up();
    throw;
  }
}

void WorkDirectory::finish(const std::string& name, ordered_json& record) {
  if (job_.is_null()) {
    identify();
  }
  record["job"] = job_;
  if (threads_.size() > 1) {
    record["notes"].push_back(
        "the work was interrupted, and went on with another number of threads (" + threads_.dump() +
        "): sums may be rounded otherwise in the last bits");
  }
  if (devices_.size() > 1) {
    record["notes"].push_back(
        "the work was interrupted, and went on with another device (" + devices_.dump() +
        "): sums may be rounded otherwise, so that the bytes may differ");
  }
  write_listed(staged_, name, record);
  require_free(out_, fresh_);  // again: it may have been used meanwhile
  const auto replaced = find_listed(out_);
  const auto written_before = part_of(replaced.record, "written");
  for (const auto& [file, hash] : written_before.items()) {
    note_made(staged_ / file);  // where it lies until it is removed
  }
  take_access(out_, staged_);
  {
    const Uninterrupted whole;
    if (replaced.record.is_null()) {
      fs::rename(staged_, out_);
    } else if (exchanged(staged_, out_)) {
      remove_listed(staged_, replaced);
    } else {
      fs::remove_all(path_ / "replaced");
      fs::rename(out_, path_ / "replaced");
      fs::rename(staged_, out_);
    }
    count_output();
    clear();
    ::close(lock_);
    lock_ = -1;
  }
  if (resumed_) {
    record["resumed"] = {{"from", path_.string()}, {"at", went_on_at_}};
  }
}

ordered_json find_finished(const fs::path& out, const Identity& identity, bool fresh) {
  const auto place = place_of(out);
  auto listed = fresh ? Listed() : find_listed(place);
  const auto then = comparable(part_of(listed.record, "job"));
  if (then.is_null()) {
    return nullptr;
  }
  const auto now = comparable(identity());
  const auto words = "--out: " + place.string() + " exists";
  if (then != now) {
    const auto [what, of_input] = difference(then, now);
    throw InputError(c10::str(
        words, of_input ? " and is of other inputs: " : " and is another command's: ", what,
        "; choose another name", fresh_words(place, listed)));
  }
  auto changed = missing(place, listed);
  for (const auto& name : not_listed(place, listed)) {
    if (listed.record.at("written").contains(name)) {
      changed.push_back(name);
    }
  }
  require(
      changed.empty(), words,
      " and is not as this command wrote it: ", joined(changed, kShownNames),
      " has changed or is gone; choose another name", fresh_words(place, listed));
  auto record = std::move(listed.record);
  record["there_before"] = true;
  count_output();
  WorkDirectory left(out);
  std::error_code ignored;
  if (!fs::is_directory(fs::symlink_status(left.path_, ignored)) ||
      !not_of_work(left.path_).empty() || !is_of_job(left.path_ / kJobFile, now)) {
    return record;  // nothing is left, or it is not this job's
  }
  try {
    left.take_lock();
  } catch (const InputError&) {
    return record;  // the process that wrote the output has not ended yet: it will do it
  }
  left.clear();
  record["removed"] = left.path_.string();
  return record;
}

}  // namespace theseus::output
