#include "theseus/checkpoint/fingerprint.h"

#include <memory>

#include <ATen/ATen.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "theseus/base/error.h"

namespace theseus::checkpoint {

std::string fingerprint(const Checkpoint& checkpoint) {
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

}  // namespace theseus::checkpoint
