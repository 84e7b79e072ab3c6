#include "theseus/checkpoint/fingerprint.h"

#include <map>
#include <mutex>

#include <ATen/ATen.h>

#include "theseus/base/content_hash.h"
#include "theseus/base/error.h"

namespace theseus::checkpoint {
namespace {

std::string computed(const Checkpoint& checkpoint) {
  ContentHash hash;
  for (const auto& info : checkpoint.tensors()) {
    hash.add(c10::str(info.name, "\n", info.dtype, at::IntArrayRef(info.shape), "\n"));
    const auto tensor = checkpoint.tensor(info.name).contiguous();
    hash.add(tensor.data_ptr(), tensor.nbytes());
    checkpoint.forget(info.name);
  }
  return hash.text();
}

// What the file system says of a checkpoint's files; empty when it does not say.
std::string stamp_of(const Checkpoint& checkpoint) {
  std::string stamps;
  for (const auto& file : checkpoint.files()) {
    const auto stamp = theseus::stamp_of(file);
    if (stamp.empty()) {
      return "";
    }
    stamps += stamp;
  }
  return stamps;
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
