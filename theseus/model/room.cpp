#include "theseus/model/room.h"

#include <numeric>

#include "theseus/base/error.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/model/family.h"

namespace theseus::model {

int64_t room_for(
    const std::filesystem::path& path, int64_t bytes_a_weight, const OpenOptions& options) {
  try {
    const auto location = locate(path, options);
    const auto& family = find_plugin(all_families(), "model family", location.family);
    const auto files = checkpoint::Checkpoint::open(location.weights, family.weights);
    const auto& tensors = files.tensors();
    return std::accumulate(
        tensors.begin(), tensors.end(), int64_t{0},
        [&](int64_t sum, const auto& tensor) { return sum + tensor.elements() * bytes_a_weight; });
  } catch (const InputError&) {
    return 0;
  }
}

int64_t room_for(
    const std::filesystem::path& path, c10::ScalarType dtype, const OpenOptions& options) {
  return room_for(path, static_cast<int64_t>(c10::elementSize(dtype)), options);
}

}  // namespace theseus::model
