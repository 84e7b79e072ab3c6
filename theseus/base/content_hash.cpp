#include "theseus/base/content_hash.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"

namespace theseus {
namespace {

namespace fs = std::filesystem;

std::string hashed_file(const fs::path& path) {
  constexpr size_t kPart = 32 << 20;  // as much of the file is in this process's memory
  const MappedFile file(path);
  const auto bytes = file.bytes();
  ContentHash hash;
  for (size_t begin = 0; begin < bytes.size(); begin += kPart) {
    const auto size = std::min(kPart, bytes.size() - begin);
    hash.add(bytes.data() + begin, size);
    file.forget(begin, size);
  }
  return hash.text();
}

}  // namespace

struct ContentHash::State {
  XXH3_state_t* xxh3 = XXH3_createState();
  ~State() { XXH3_freeState(xxh3); }
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_128bits_reset(state_->xxh3);
}

ContentHash::~ContentHash() = default;

void ContentHash::add(const void* data, size_t size) {
  XXH3_128bits_update(state_->xxh3, data, size);
}

std::string ContentHash::text() const {
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(state_->xxh3));
  std::string text = "xxh3:";
  for (const auto byte : digest.digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::string hash_of_text(std::string_view text) {
  ContentHash hash;
  hash.add(text);
  return hash.text();
}

std::string stamp_of(const fs::path& path) {
  struct stat about = {};
  if (::stat(path.c_str(), &about) != 0) {
    return "";
  }
  return c10::str(
      path.string(), '\n', about.st_dev, ' ', about.st_ino, ' ', about.st_size, ' ',
      about.st_mtim.tv_sec, ' ', about.st_mtim.tv_nsec, ' ', about.st_ctim.tv_sec, ' ',
      about.st_ctim.tv_nsec, '\n');
}

std::string hash_of_file(const fs::path& path) {
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const auto stamp = stamp_of(path);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(stamp); found != known.end()) {
      return found->second;
    }
  }
  auto text = hashed_file(path);
  if (!stamp.empty() && stamp == stamp_of(path)) {
    const std::lock_guard lock(mutex);
    known[stamp] = text;
  }
  return text;
}

}  // namespace theseus
