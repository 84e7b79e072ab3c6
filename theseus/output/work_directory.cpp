#include "theseus/output/work_directory.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <regex>
#include <set>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/interrupts.h"
#include "theseus/base/text.h"
#include "theseus/output/added_tokens.h"
#include "theseus/output/text_file.h"
#include "theseus/output/written.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr int64_t kLongestJob = 16 << 20;
constexpr size_t kShownNames = 5;
constexpr const char* kJobFile = "job.json";
constexpr const char* kCopiedFile = "copied.json";
constexpr const char* kLockFile = "lock";
constexpr std::string_view kLockText = "theseus\n";  // tells our directory from others
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

std::string shown(const nlohmann::json& value) {
  return value.is_null()     ? "not given"
         : value.is_string() ? value.get<std::string>()
                             : value.dump();
}

// In what `is` is another job than `was`.
std::string difference(const ordered_json& was, const ordered_json& is) {
  if (!was.is_object()) {
    return "it cannot be read";
  }
  const auto find = [](const ordered_json& from, const std::string& key) {
    return from.is_object() && from.contains(key) ? from.at(key) : ordered_json();
  };
  const auto given = find(was, "options"), gives = find(is, "options");
  for (const auto& options : {given, gives}) {
    for (const auto& [name, value] : options.items()) {
      if (find(given, name) != find(gives, name)) {
        return c10::str(
            name, " was ", shown(find(given, name)), " and is now ", shown(find(gives, name)));
      }
    }
  }
  for (const char* key : {"version", "processes"}) {
    if (find(was, key) != find(is, key)) {
      return c10::str(key, " was ", shown(find(was, key)), " and is now ", shown(find(is, key)));
    }
  }
  const auto before = find(was, "inputs"), now = find(is, "inputs");
  for (const auto& inputs : {before, now}) {
    for (const auto& [what, hash] : inputs.items()) {
      if (find(before, what) != find(now, what)) {
        return what + " has changed since";
      }
    }
  }
  return "its inputs have changed";
}

// What a job writes into its directory; `.NAME.PID.NUMBER.tmp` is a file on the way to its name.
bool is_of_work(const fs::path& path) {
  static const std::regex kFiles(
      R"((\.)?(lock|solved|losses\.jsonl|(job|memory|route|copied|carried-\d+)\.json|)"
      R"((walk|schedule|gradients|signs|training|best|imitated|carried-\d+|states-\d+-\d+)\.safetensors))"
      R"((\.\d+\.\d+\.tmp)?)");
  static const std::regex kFolders("output|stages|replaced");
  std::error_code ignored;
  const auto status = fs::symlink_status(path, ignored);
  const auto name = path.filename().string();
  return std::regex_match(name, fs::is_directory(status) ? kFolders : kFiles) &&
         (fs::is_directory(status) || fs::is_regular_file(status));
}

bool is_temporary(const fs::path& path) {
  return path.filename().string().starts_with('.') && path.extension() == ".tmp";
}

// Of a name below OUT.partial/output or stages, whether a job writes there what is called so; `copied`: names that the
// inputs have.
bool is_of_output(const std::string& spelled, const std::set<std::string>& copied) {
  static const std::regex kOnTheWay(R"((.*/)?\.([^/]+)\.\d+\.\d+\.tmp)");
  static const std::regex kFiles(
      R"(((maps|moments)-\d+|update|([^/]*/)?[^/]*model[^/]*)\.safetensors|.*\.safetensors\.index\.json|)"
      R"((theseus|alignment|modules|([^/]*/)?([^/]*_)?config)\.json|recipe\.yaml|README\.md|losses\.jsonl)");
  const auto name = std::regex_replace(spelled, kOnTheWay, "$1$2");
  return std::regex_match(name, kFiles) || copied.contains(name) || is_tokenizer_file(name);
}

// What lies in a folder of unfinished work and is no job's. An output that was replaced may lie there, too.
void add_strangers_below(
    const fs::path& folder, const std::set<std::string>& copied, std::vector<std::string>& others) {
  const auto listed = find_listed(folder);
  const auto& record = listed.record;
  const auto changed = record.is_null() ? std::vector<std::string>() : not_listed(folder, listed);
  const std::set<std::string> unlisted(changed.begin(), changed.end());
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ignored)) {
    const auto name = entry.path().lexically_relative(folder).generic_string();
    const bool was_listed = !record.is_null() && !unlisted.contains(name);
    const auto status = entry.symlink_status(ignored);
    const bool ours = fs::is_directory(status) || was_listed ||
                      (fs::is_regular_file(status) && is_of_output(name, copied));
    if (!ours) {
      others.push_back((folder.filename() / name).generic_string());
    }
  }
}

std::set<std::string> names_copied_to(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code ignored;
  const auto file = directory / kCopiedFile;
  if (fs::is_regular_file(fs::symlink_status(file, ignored))) {
    for (const auto& name : ordered_json::parse(
             read_text_file(file, kLongestJob), nullptr, /*allow_exceptions=*/false)) {
      names.insert(name.is_string() ? name.get<std::string>() : "");
    }
  }
  return names;
}

// Names of what is not a job's; all of them where nothing says that the directory is one.
std::vector<std::string> strangers_in(const fs::path& directory) {
  std::vector<std::string> names, others;
  std::error_code ignored;
  const auto copied = names_copied_to(directory);
  for (const auto& entry : entries_of(directory)) {
    names.push_back(entry.filename().string());
    if (!is_of_work(entry)) {
      others.push_back(names.back());
    } else if (fs::is_directory(entry, ignored)) {
      add_strangers_below(entry, copied, others);
    }
  }
  const auto lock = directory / kLockFile;
  const auto size = fs::is_regular_file(lock, ignored) ? fs::file_size(lock, ignored) : 0;
  const bool ours = size == kLockText.size() && read_text_file(lock, kLongestJob) == kLockText;
  const bool just_begun = size == 0 && names == std::vector<std::string>{kLockFile};
  return ours || just_begun ? others : names;
}

ordered_json read_job(const fs::path& file) {
  std::error_code ignored;
  return fs::exists(file, ignored)
             ? ordered_json::parse(
                   read_text_file(file, kLongestJob), nullptr, /*allow_exceptions=*/false)
             : ordered_json();
}

ordered_json part_of(const ordered_json& document, const char* key) {
  return document.is_object() && document.contains(key) ? document.at(key) : ordered_json();
}

// The same job may run on another device, which rounds otherwise.
ordered_json without_device(ordered_json job) {
  if (job.is_object()) {
    job.erase("device");
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

// Both are there afterwards, or neither has moved; false where the file system cannot.
bool exchanged(const fs::path& one, const fs::path& other) {
  return ::renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) == 0;
}

}  // namespace

std::vector<std::string> not_of_work(const fs::path& directory) {
  return strangers_in(directory);
}

std::vector<fs::path> entries_of(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

bool is_input(const std::string& option, const std::string& value) {
  static const std::set<std::string> kInputs = {
      "source", "tuned",      "target",     "calibration", "alignment", "model",  "data",
      "head",   "start-from", "validation", "familiar",    "adapter",   "update", "training"};
  static const std::set<std::string> kHeads = {"new", "zero-shot", "keep"};
  return kInputs.contains(option) && !(option == "head" && kHeads.contains(value));
}

ordered_json deciding_options(const ordered_json& words) {
  static const std::set<std::string> kOfTheRun = {"threads", "memory", "save-every", "device"};
  auto options = ordered_json::object();
  for (const auto& [name, value] : words.items()) {
    const auto text = value.is_string() ? value.get<std::string>() : "";
    if (!is_input(name, text) && !kOfTheRun.contains(name)) {
      options[name] = value;
    }
  }
  return options;
}

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
  require(fresh, words, listed.record.is_null() ? "" : kFreshReplaces);
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
  const auto strangers = strangers_in(path_);
  require(
      strangers.empty(), "--out: ", path_.string(),
      " is where unfinished work would lie, and it holds what is of an earlier build, or not "
      "ours: ",
      joined(strangers, kShownNames), "; remove it by hand, or choose another name");
  fs::create_directory(path_, error);
  require(!error, "--out: cannot make ", path_.string(), ": ", error.message());
  take_lock();
  require_free(out_, fresh);  // again: the process that had the lock may have finished just now
  begin();
}

// What an earlier process left goes, unless this one can go on with it.
void WorkDirectory::begin() {
  const auto found = read_job(path_ / kJobFile);
  resumed_ = !found.is_null() && holds_work() && !fresh_;
  if (resumed_) {
    find_job();
    const auto before = without_device(part_of(found, "job"));
    require(
        before == job_, "--out: ", path_.string(),
        " holds the unfinished work of another command: ", difference(before, job_),
        "; repeat that command to finish it, or give --fresh to start over");
    threads_ = part_of(found, "threads");
    devices_ = part_of(found, "devices");
  }
  for (const auto& entry : entries_of(path_)) {
    if (entry.filename() != kLockFile && (!resumed_ || is_temporary(entry))) {
      fs::remove_all(entry);
    }
  }
  fs::remove_all(staged_);
  fs::create_directory(staged_);
  if (resumed_) {
    identify();
  }
}

void WorkDirectory::find_job() {
  const auto found = identity_();
  device_ = part_of(found, "device");
  job_ = without_device(found);
}

void WorkDirectory::identify() {
  if (job_.is_null()) {
    find_job();
  }
  add_once(at::get_num_threads(), threads_);
  add_once(device_, devices_);
  write_json(path_ / kJobFile, {{"job", job_}, {"threads", threads_}, {"devices", devices_}});
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
  require(
      opened.st_size == size || ::pwrite(lock_, kLockText.data(), kLockText.size(), 0) == size,
      "--out: cannot write in ", path_.string(), ": ", std::generic_category().message(errno));
}

bool WorkDirectory::holds_work() const {
  return std::any_of(std::begin(kWorkFiles), std::end(kWorkFiles), [&](const char* name) {
    std::error_code ignored;
    return fs::exists(path_ / name, ignored);
  });
}

// The lock goes last: as long as something of ours is there, it says whose it is.
void WorkDirectory::clear() noexcept {
  std::error_code ignored;
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

void WorkDirectory::expect(const std::set<std::string>& names) {
  write_json(path_ / kCopiedFile, names);
}

void WorkDirectory::check_result(const std::function<void()>& check) {
  try {
    check();
  } catch (const Error&) {
    kept_ = resumed_ = false;
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
  const auto then = without_device(part_of(listed.record, "job"));
  if (then.is_null()) {
    return nullptr;
  }
  const auto now = without_device(identity());
  const auto words = "--out: " + place.string() + " exists";
  require(
      then == now, words, " and is another command's: ", difference(then, now),
      "; choose another name", kFreshReplaces);
  auto changed = missing(place, listed);
  for (const auto& name : not_listed(place, listed)) {
    if (listed.record.at("written").contains(name)) {
      changed.push_back(name);
    }
  }
  require(
      changed.empty(), words,
      " and is not as this command wrote it: ", joined(changed, kShownNames),
      " has changed or is gone; choose another name", kFreshReplaces);
  auto record = std::move(listed.record);
  record["there_before"] = true;
  count_output();
  WorkDirectory left(out);
  std::error_code ignored;
  const auto job = without_device(part_of(read_job(left.path_ / kJobFile), "job"));
  if (!fs::is_directory(fs::symlink_status(left.path_, ignored)) ||
      !strangers_in(left.path_).empty() || (!job.is_null() && job != now)) {
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
