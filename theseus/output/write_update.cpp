#include "theseus/output/write_update.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/checkpoint/write.h"
#include "theseus/model/layers.h"

namespace theseus::output {

void write_update(
    const std::filesystem::path& directory,
    const std::vector<UpdateEntry>& entries,
    const Deltas& deltas,
    const Watch& watch) {
  constexpr int64_t kFloatBytes = 4;
  std::vector<checkpoint::Entry> stored;
  int64_t all = 0;
  for (const auto& [tensor, shape] : entries) {
    stored.push_back({.name = tensor, .dtype = at::kFloat, .shape = shape, .tied_to = {}});
    all += c10::multiply_integers(shape) * kFloatBytes;
  }
  int64_t done = 0;
  const auto path = directory / kUpdateFile;
  const auto next = [&](const checkpoint::Entry& entry) {
    auto delta = deltas(entry.name);
    require<InternalError>(delta.defined(), "there is no delta of ", entry.name);
    require<NumericError>(
        model::all_finite(delta), "the delta of ", entry.name, " holds NaN or infinity");
    if (watch) {
      watch(done, all);
    }
    done += static_cast<int64_t>(delta.nbytes());
    return delta;
  };
  with_context(
      "writing " + path.string(), [&] { checkpoint::write_safetensors(path, stored, next); });
  if (watch) {
    watch(all, all);
  }
}

}  // namespace theseus::output
