#include "theseus/checkpoint/fingerprint.h"

#include <map>
#include <mutex>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::checkpoint {
namespace {

std::string computed(const Checkpoint& checkpoint) {
  ContentHash hash;
  for (const auto& info : checkpoint.tensors()) {
    add_tensor(hash, info.name, info.dtype, checkpoint.tensor(info.name).contiguous());
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

void add_tensor(
    ContentHash& hash, const std::string& name, std::string_view dtype, const at::Tensor& tensor) {
  hash.add(c10::str(name, "\n", dtype, tensor.sizes(), "\n"));
  hash.add(tensor.data_ptr(), tensor.nbytes());
}

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
