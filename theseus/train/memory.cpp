// Of one sequence of t tokens a block keeps about 10 activations of its width, 4 of its MLP's and 3 of
// its scores [h, t, t]; the head of a language model 3 of its logits [t, v].

#include "theseus/train/memory.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace theseus::train {
namespace {

// Of the longest input that the tower reads; 0: it reads none.
int64_t tokens_of(const model::Tower& tower, const model::Batch& batch) {
  const bool images = batch.contains("pixel_values");
  if (tower.image > 0) {
    return images ? tower.positions : 0;
  }
  int64_t longest = 0;
  for (const auto& [name, tensor] : batch) {
    longest = name == "pixel_values" ? longest : std::max(longest, tensor.size(-1));
  }
  return longest;
}

}  // namespace

int64_t bytes_a_weight(c10::ScalarType dtype, bool low_rank) {
  constexpr int64_t kLearnt = 4 * sizeof(float);
  return static_cast<int64_t>(c10::elementSize(dtype)) + (low_rank ? 0 : kLearnt);
}

int64_t sequences_at_a_time(
    const model::Architecture& architecture, const gradient::Labelled& batch, c10::Device device) {
  const int64_t bound = (device.is_cpu() ? int64_t{1} : int64_t{16}) << 30;
  int64_t bytes = 1;
  for (const auto& tower : architecture.towers) {
    const auto t = tokens_of(tower, batch.batch);
    const auto element = static_cast<int64_t>(sizeof(float));
    bytes +=
        element * tower.blocks * (t * (10 * tower.width + 4 * tower.mlp) + 3 * tower.heads * t * t);
    bytes += batch.wanted.defined() ? 3 * element * t * tower.vocabulary : 0;
  }
  return std::clamp<int64_t>(bound / bytes, 1, batch.size());
}

int64_t sequences_at_a_time(
    int64_t asked, const model::Model& model, const gradient::Labelled& batch) {
  return asked > 0
             ? asked
             : sequences_at_a_time(model.architecture(), batch, model.weights().placement().device);
}

}  // namespace theseus::train
