#include "theseus/checkpoint/fingerprint.h"

#include <map>
#include <memory>
#include <mutex>
#include <sys/stat.h>

#include <ATen/ATen.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "theseus/base/error.h"

namespace theseus::checkpoint {
namespace {

std::string computed(const Checkpoint& checkpoint) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
      XXH3_createState(), XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (const auto& info : checkpoint.tensors()) {
    const auto head = c10::str(info.name, "\n", info.dtype, at::IntArrayRef(info.shape), "\n");
    XXH3_128bits_update(state.get(), head.data(), head.size());
    const auto tensor = checkpoint.tensor(info.name).contiguous();
    XXH3_128bits_update(state.get(), tensor.data_ptr(), tensor.nbytes());
    checkpoint.forget(info.name);
  }
  XXH128_canonical_t digest;
  XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(state.get()));
  std::string text = "xxh3:";
  for (const auto byte : digest.digest) {
    constexpr char kDigits[] = "0123456789abcdef";
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

// What the file system says of a checkpoint's files; empty when it does not say.
std::string stamp_of(const Checkpoint& checkpoint) {
  std::string stamp;
  for (const auto& file : checkpoint.files()) {
    struct stat about = {};
    if (::stat(file.c_str(), &about) != 0) {
      return "";
    }
    stamp += c10::str(
        file.string(), '\n', about.st_dev, ' ', about.st_ino, ' ', about.st_size, ' ',
        about.st_mtim.tv_sec, ' ', about.st_mtim.tv_nsec, ' ', about.st_ctim.tv_sec, ' ',
        about.st_ctim.tv_nsec, '\n');
  }
  return stamp;
}

}  // namespace

std::string fingerprint(const Checkpoint& checkpoint) {
  // A base of many gigabytes is asked for several times in one job, and once for each of many updates.
  static std::mutex mutex;
  static std::map<std::string, std::string> known;
  const auto stamp = stamp_of(checkpoint);
  {
    const std::lock_guard lock(mutex);
    if (const auto found = known.find(stamp); !stamp.empty() && found != known.end()) {
      return found->second;
    }
  }
  auto text = computed(checkpoint);
  if (!stamp.empty() && stamp == stamp_of(checkpoint)) {
    const std::lock_guard lock(mutex);
    known[stamp] = text;
  }
  return text;
}

}  // namespace theseus::checkpoint
