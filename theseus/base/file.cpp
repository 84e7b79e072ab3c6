#include "theseus/base/file.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "theseus/base/error.h"

namespace theseus {
namespace {

std::string last_error() {
  return std::strerror(errno);
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

void sync_directory(const std::filesystem::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor >= 0) {
    ::fsync(descriptor);
    ::close(descriptor);
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require(descriptor >= 0, "cannot open ", path.string(), ": ", last_error());
  struct stat status = {};
  const bool known = ::fstat(descriptor, &status) == 0;
  const bool regular = known && S_ISREG(status.st_mode);
  if (regular && status.st_size > 0) {
    size_ = static_cast<size_t>(status.st_size);
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    data_ = address == MAP_FAILED ? nullptr : static_cast<const std::byte*>(address);
  }
  ::close(descriptor);
  require(regular, path.string(), " is not a regular file");
  require(size_ == 0 || data_ != nullptr, "cannot map ", path.string(), " (", size_, " bytes)");
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
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

AtomicFile::AtomicFile(const std::filesystem::path& path, int64_t size) : path_(path) {
  temporary_ =
      path.parent_path() / c10::str(".", path.filename().string(), ".", ::getpid(), ".tmp");
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  require(descriptor_ >= 0, "cannot write ", path.string(), ": ", last_error());
  slot_ = remember_unfinished(temporary_.string());
  // File systems without reservation say so, and the writes themselves will tell.
  if (size > 0 && ::fallocate(descriptor_, 0, 0, size) != 0 && errno == ENOSPC) {
    const std::string reason = last_error();
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
    forget_unfinished(slot_);
    throw InputError(c10::str("cannot write ", path.string(), " (", size, " bytes): ", reason));
  }
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
  forget_unfinished(slot_);
}

void AtomicFile::append(const void* data, size_t size) {
  const char* next = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(descriptor_, next, size);
    if (written < 0 && errno == EINTR) {
      continue;
    }
    require(written > 0, "cannot write ", path_.string(), ": ", last_error());
    next += written;
    size -= static_cast<size_t>(written);
  }
}

void AtomicFile::sync() {
  require(::fsync(descriptor_) == 0, "cannot write ", path_.string(), ": ", last_error());
}

void AtomicFile::commit() {
  sync();
  require(
      ::rename(temporary_.c_str(), path_.c_str()) == 0, "cannot create ", path_.string(), ": ",
      last_error());
  ::close(descriptor_);
  descriptor_ = -1;
  sync_directory(path_.has_parent_path() ? path_.parent_path() : ".");
}

void remove_unfinished_files() noexcept {
  for (auto& slot : unfinished_files) {
    if (slot.ready) {
      ::unlink(slot.path.data());
    }
  }
}

}  // namespace theseus
