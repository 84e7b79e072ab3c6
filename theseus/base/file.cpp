#include "theseus/base/file.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include "theseus/base/error.h"
#include "theseus/base/made_files.h"
#include "theseus/base/owner.h"

namespace theseus {
namespace {

std::string last_error() {
  return std::generic_category().message(errno);
}

// Paths that an interrupt must remove. A fixed array of plain characters, because a signal handler
// may neither allocate nor lock.
struct Unfinished {
  std::atomic<bool> taken = false;
  std::atomic<bool> ready = false;
  std::array<char, 4096> path = {};
};
std::array<Unfinished, 1024> unfinished_files;  // 1024 shards of 5 GB at once

int remember_unfinished(const std::string& path) {
  for (size_t i = 0; i < unfinished_files.size(); ++i) {
    auto& slot = unfinished_files[i];
    if (path.size() < slot.path.size() && !slot.taken.exchange(true)) {
      std::memcpy(slot.path.data(), path.c_str(), path.size() + 1);
      slot.ready = true;
      return static_cast<int>(i);
    }
  }
  return -1;  // more files than slots: only an interrupt could leave this one behind
}

void forget_unfinished(int index) {
  if (index >= 0) {
    unfinished_files[index].ready = false;
    unfinished_files[index].taken = false;
  }
}

// Opens a file that did not exist, beside `path`. The name holds the process id and a number, so two
// files on the way to one name never share bytes; a number that an earlier, killed process left
// behind is passed over. -1 and errno on failure. The name is noted before there is a file: an
// interrupt may come at any point.
int create_beside(const std::filesystem::path& path, std::filesystem::path& temporary, int& slot) {
  static std::atomic<unsigned> next = 0;
  constexpr int kAttempts = 1000;
  int descriptor = -1;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const auto name = c10::str(".", path.filename().string(), ".", ::getpid(), ".", next++, ".tmp");
    temporary = path.parent_path() / name;
    slot = remember_unfinished(temporary.string());
    descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor >= 0) {
      ::flock(descriptor, LOCK_EX | LOCK_NB);  // as long as it is open: it is not abandoned
      break;
    }
    const int reason = errno;
    forget_unfinished(slot);
    slot = -1;
    errno = reason;
    if (reason != EEXIST) {
      break;
    }
  }
  return descriptor;
}

// Whether the file system has no room for `size` bytes. One that cannot reserve says so with another
// error, and the writes themselves will tell.
bool too_large(int descriptor, int64_t size) {
  return size > 0 && ::fallocate(descriptor, 0, 0, size) != 0 &&
         (errno == ENOSPC || errno == EDQUOT || errno == EFBIG);
}

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

// Where a link leads, also when nothing is there yet: what is written belongs there, and the link
// stays.
std::filesystem::path resolved(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as many as the system follows
  std::error_code error;
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  // Without O_NONBLOCK a named pipe would wait for a writer.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require(descriptor >= 0, "cannot open ", path.string(), ": ", last_error());
  struct stat status = {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const bool regular = known && S_ISREG(status.st_mode);
  std::string reason;
  if (regular && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    reason = address == MAP_FAILED ? last_error() : "";
    data_ = address == MAP_FAILED ? nullptr : static_cast<const std::byte*>(address);
  }
  ::close(descriptor);
  require(!S_ISDIR(status.st_mode), path.string(), " is a directory, not a file");
  require(regular, path.string(), " is not a regular file");
  require(reason.empty(), "cannot map ", path.string(), " (", size_, " bytes): ", reason);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

void MappedFile::forget(size_t begin, size_t size) const {
  // Whole pages only: the bytes around may belong to what is being read.
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (begin + page - 1) / page * page;
  const size_t last = std::min(begin + size, size_) / page * page;
  if (first < last) {
    ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
  }
}

std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes) {
  const MappedFile file(path);
  const auto bytes = file.bytes();
  require(
      static_cast<int64_t>(bytes.size()) <= max_bytes, path.string(), " is ", bytes.size(),
      " bytes; at most ", max_bytes, " are read");
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void sync_file(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool stored = descriptor >= 0 && ::fsync(descriptor) == 0;
  const auto reason = stored ? "" : last_error();
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  require(stored, "cannot store ", path.string(), ": ", reason);
  sync_directory(path.has_parent_path() ? path.parent_path() : ".");
}

AtomicFile::AtomicFile(const std::filesystem::path& path, int64_t size)
    : path_(resolved(path)), reserved_(size) {
  std::error_code ignored;
  require(
      path.has_filename() && !std::filesystem::is_directory(path, ignored), "cannot write ",
      path.string(), ": it is a directory");
  // Renaming onto a device or a pipe would put a file in its place.
  const auto existing = std::filesystem::status(path, ignored);
  require(
      !std::filesystem::exists(existing) || std::filesystem::is_regular_file(existing),
      "cannot write ", path.string(), ": it is not a regular file");
  note_made(path_);
  descriptor_ = create_beside(path_, temporary_, slot_);
  require(descriptor_ >= 0, "cannot write ", path.string(), ": ", last_error());
  if (too_large(descriptor_, size)) {
    const std::string reason = last_error();
    abandon();
    throw InputError(c10::str("cannot write ", path.string(), " (", size, " bytes): ", reason));
  }
}

AtomicFile::~AtomicFile() {
  abandon();
}

void AtomicFile::abandon() noexcept {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    descriptor_ = -1;
  }
  forget_unfinished(slot_);
  slot_ = -1;
}

void AtomicFile::append(const void* data, size_t size) {
  write_at(end_, data, size);
}

void AtomicFile::write_at(int64_t offset, const void* data, size_t size) {
  require<InternalError>(descriptor_ >= 0, path_.string(), " is already committed");
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::pwrite(descriptor_, next, size, offset);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    require(written > 0, "cannot write ", path_.string(), ": ", last_error());
    next += written;
    size -= static_cast<size_t>(written);
    offset += written;
    waiting_ += written;
  }
  end_ = std::max(end_, offset);
  // The disk may begin: then sync() has less to wait for. Where it cannot, nothing is lost.
  if (constexpr int64_t kBegun = 16 << 20; reserved_ > 0 && waiting_ >= kBegun) {
    ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE);
    waiting_ = 0;
  }
}

void AtomicFile::sync() {
  require<InternalError>(descriptor_ >= 0, path_.string(), " is already committed");
  // The error is read in a statement of its own: arguments of one call are evaluated in any order.
  const bool whole = end_ >= reserved_ || ::ftruncate(descriptor_, end_) == 0;
  const bool stored = whole && ::fsync(descriptor_) == 0;
  require(stored, "cannot write ", path_.string(), ": ", last_error());
}

void AtomicFile::commit() {
  sync();
  rename();
  sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

void AtomicFile::commit_unsynced() {
  require<InternalError>(reserved_ == 0, path_.string(), " would read as zeros after a crash");
  // Some file systems say only when a file is closed that there was no room for it.
  const int copy = ::dup(descriptor_);
  const bool stored = copy >= 0 && ::close(copy) == 0;
  require(stored, "cannot write ", path_.string(), ": ", last_error());
  rename();
}

void AtomicFile::rename() {
  const bool renamed = ::rename(temporary_.c_str(), path_.c_str()) == 0;
  require(renamed, "cannot create ", path_.string(), ": ", last_error());
  ::close(descriptor_);
  descriptor_ = -1;
  forget_unfinished(slot_);
  slot_ = -1;
}

// `.NAME.PID.NUMBER.tmp`
bool is_abandoned(const std::filesystem::path& path, std::string_view name) {
  const auto file = path.filename().string();
  const auto front = c10::str(".", name, ".");
  constexpr std::string_view kEnd = ".tmp";
  if (file.size() < front.size() + kEnd.size() || !file.starts_with(front) ||
      !file.ends_with(kEnd)) {
    return false;
  }
  const auto numbers = file.substr(front.size(), file.size() - front.size() - kEnd.size());
  const auto dot = numbers.find('.');
  std::error_code ignored;
  return dot != std::string::npos && dot + 1 < numbers.size() &&
         numbers.find_first_not_of("0123456789", dot + 1) == std::string::npos &&
         std::filesystem::is_regular_file(std::filesystem::symlink_status(path, ignored)) &&
         owner_has_ended(path, std::string_view(numbers).substr(0, dot), O_WRONLY);
}

void remove_abandoned(const std::filesystem::path& path) {
  const auto target = resolved(path);
  const auto directory = target.has_parent_path() ? target.parent_path() : ".";
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    if (is_abandoned(entry.path(), target.filename().string())) {
      std::filesystem::remove(entry.path(), ignored);
    }
  }
}

void remove_unfinished_files() noexcept {
  constexpr int kMilliseconds = 5;
  // Twice: another thread may be between noting a file and making it.
  for (int pass = 0; pass < 2; ++pass) {
    for (auto& slot : unfinished_files) {
      if (slot.ready) {
        ::unlink(slot.path.data());
      }
    }
    ::poll(nullptr, 0, kMilliseconds);
  }
}

}  // namespace theseus
