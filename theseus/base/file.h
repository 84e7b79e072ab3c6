#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace theseus {

// A whole file, mapped read-only. The pages belong to the operating system: opening costs nothing
// and reading a part brings in only that part. Writing through the pointer is a crash.
class MappedFile {
 public:
  // Throws InputError when the path is missing, not readable, or not a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  // Says that these bytes will not be read again soon: their pages no longer count as this process's
  // memory. Reading them brings them back.
  void forget(size_t begin, size_t size) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// The file's text. Throws InputError when it cannot be read or is longer than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, int64_t max_bytes);

// Waits until the disk has the file. Throws InputError when it cannot.
void sync_file(const std::filesystem::path& path);

// A file that appears under its name (or where a link of that name leads) whole or not at all: bytes go to a temporary name beside it,
// commit() syncs and renames, and destruction without commit() removes the temporary.
// Every failure (no space, no rights) is an InputError with the path. A process that has not ignored
// SIGXFSZ dies by it at a file size limit, before there is an error to report.
class AtomicFile {
 public:
  // `size` bytes are reserved at once where the file system can, so a full disk shows before the
  // work and not after it; 0 reserves nothing. The file ends behind the last byte that was written.
  explicit AtomicFile(const std::filesystem::path& path, int64_t size = 0);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void append(const void* data, size_t size);
  void append(std::string_view text) { append(text.data(), text.size()); }
  void write_at(int64_t offset, const void* data, size_t size);
  // Waits until the disk has everything: with several files, sync() all before the first commit(),
  // so that a disk found full this late still leaves none of them.
  void sync();
  void commit();
  // Likewise without waiting for the disk: whole for whoever reads it from now on, but not after the machine's sudden end,
  // unless sync_file() came before.
  void commit_unsynced();

 private:
  void rename();
  void abandon() noexcept;

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int64_t reserved_ = 0;
  int64_t end_ = 0;
  int64_t waiting_ = 0;  // bytes that the disk was not yet told of
  int descriptor_ = -1;
  int slot_ = -1;
};

// Whether `path` is the temporary of an AtomicFile called `name` whose process was killed.
bool is_abandoned(const std::filesystem::path& path, std::string_view name);
// Removes those of a file that is about to be written: they may hold much space.
void remove_abandoned(const std::filesystem::path& path);

// Removes the temporaries of every AtomicFile now open. Async-signal-safe: for the handler of an
// interrupt that is about to end the process.
void remove_unfinished_files() noexcept;

}  // namespace theseus
