// With b the base, d = alpha delta, and s() the rounding to the stored dtype:
//   value = s(b + d), summed in float32 (float64 where that is stored) and rounded once;
//   norm  = |d|;
//   lost  = |d - (value - b)|: what of the step does not show in the stored numbers.
// In bfloat16 a step below 2^-9 |b| disappears; lost / norm is the share of the update that did.

#include "theseus/output/add_delta.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"

namespace theseus::output {
namespace {

constexpr int64_t kChunk = 1 << 16;

struct Tally {
  double norm_squared = 0;
  double lost_squared = 0;
  bool finite = true;
};

template <class Stored, class Wide>
Tally add_chunk(const Stored* base, const Wide* delta, Wide alpha, int64_t count, Stored* value) {
  Tally tally;
  for (int64_t i = 0; i < count; ++i) {
    const auto before = static_cast<Wide>(base[i]);
    const Wide step = alpha * delta[i];
    // -0 + 0 is +0: the base's bits are copied instead.
    value[i] = step == 0 ? base[i] : static_cast<Stored>(before + step);
    const auto after = static_cast<Wide>(value[i]);
    const double lost =
        static_cast<double>(step) - (static_cast<double>(after) - static_cast<double>(before));
    tally.norm_squared += static_cast<double>(step) * static_cast<double>(step);
    tally.lost_squared += lost * lost;
    tally.finite = tally.finite && std::isfinite(after);
  }
  return tally;
}

template <class Stored>
Sum add_all(const at::Tensor& base, const at::Tensor& delta, double alpha) {
  using Wide = std::conditional_t<std::is_same_v<Stored, double>, double, float>;
  const auto from = base.contiguous();
  const auto step = delta.to(at::kCPU, c10::CppTypeToScalarType<Wide>::value).contiguous();
  Sum sum{.value = at::empty(base.sizes(), base.options())};
  const int64_t count = from.numel();
  std::vector<Tally> tallies(static_cast<size_t>((count + kChunk - 1) / kChunk));
  const auto* from_data = from.data_ptr<Stored>();
  const auto* step_data = step.template data_ptr<Wide>();
  auto* value_data = sum.value.data_ptr<Stored>();
  at::parallel_for(0, static_cast<int64_t>(tallies.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) {
      const int64_t begin = chunk * kChunk;
      tallies[static_cast<size_t>(chunk)] = add_chunk(
          from_data + begin, step_data + begin, static_cast<Wide>(alpha),
          std::min(kChunk, count - begin), value_data + begin);
    }
  });
  for (const Tally& tally : tallies) {
    sum.norm_squared += tally.norm_squared;
    sum.lost_squared += tally.lost_squared;
    sum.finite = sum.finite && tally.finite;
  }
  return sum;
}

}  // namespace

Sum add_delta(const at::Tensor& base, const at::Tensor& delta, double alpha) {
  require<InternalError>(
      base.sizes() == delta.sizes(), "a delta of shape ", delta.sizes(), " for a tensor of shape ",
      base.sizes());
  switch (base.scalar_type()) {
    case at::kFloat:
      return add_all<float>(base, delta, alpha);
    case at::kHalf:
      return add_all<at::Half>(base, delta, alpha);
    case at::kBFloat16:
      return add_all<at::BFloat16>(base, delta, alpha);
    case at::kDouble:
      return add_all<double>(base, delta, alpha);
    default:
      throw InputError(c10::str(
          "dtype ", base.scalar_type(),
          ": a delta can only be added to float16, bfloat16, float32 and float64"));
  }
}

}  // namespace theseus::output
