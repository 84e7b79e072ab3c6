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
  Addition addition;
  bool finite = true;
};

template <class Base, class Stored, class Wide>
Tally add_chunk(const Base* base, const Wide* delta, Wide alpha, int64_t count, Stored* value) {
  Tally tally;
  auto& [norm, lost, arrived, whole] = tally.addition;
  for (int64_t i = 0; i < count; ++i) {
    const auto before = static_cast<Wide>(base[i]);
    const Wide step = alpha * delta[i];
    // -0 + 0 is +0: the base's bits are copied instead.
    value[i] = step == 0 ? static_cast<Stored>(base[i]) : static_cast<Stored>(before + step);
    const auto after = static_cast<Wide>(value[i]);
    const double there = static_cast<double>(after) - static_cast<double>(before);
    const double missing = static_cast<double>(step) - there;
    norm += static_cast<double>(step) * static_cast<double>(step);
    lost += missing * missing;
    arrived += there * there;
    whole += static_cast<double>(before) * static_cast<double>(before);
    tally.finite = tally.finite && std::isfinite(after);
  }
  return tally;
}

template <class Base, class Stored>
Sum add_all(const at::Tensor& base, const at::Tensor& delta, double alpha) {
  using Wide = std::conditional_t<std::is_same_v<Base, double>, double, float>;
  const auto from = base.contiguous();
  const auto step = delta.to(at::kCPU, c10::CppTypeToScalarType<Wide>::value).contiguous();
  Sum sum{
      .value =
          at::empty(base.sizes(), base.options().dtype(c10::CppTypeToScalarType<Stored>::value))};
  const int64_t count = from.numel();
  std::vector<Tally> tallies(static_cast<size_t>((count + kChunk - 1) / kChunk));
  const auto* from_data = from.data_ptr<Base>();
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
    sum.addition.add(tally.addition);
    sum.finite = sum.finite && tally.finite;
  }
  return sum;
}

template <class Stored>
Sum add_as(const at::Tensor& base, const at::Tensor& delta, double alpha) {
  return base.scalar_type() == c10::CppTypeToScalarType<Stored>::value
             ? add_all<Stored, Stored>(base, delta, alpha)
             : add_all<float, Stored>(base.to(at::kFloat), delta, alpha);
}

bool is_added(at::ScalarType dtype) {
  return dtype == at::kHalf || dtype == at::kBFloat16 || dtype == at::kFloat ||
         dtype == at::kDouble;
}

}  // namespace

void Addition::add(const Addition& other) {
  norm_squared += other.norm_squared;
  lost_squared += other.lost_squared;
  arrived_squared += other.arrived_squared;
  base_squared += other.base_squared;
}

double Addition::lost() const {
  return norm_squared > 0 ? lost_squared / norm_squared : 0;
}

Sum add_delta(
    const at::Tensor& base, const at::Tensor& delta, double alpha, at::ScalarType stored) {
  require<InternalError>(
      base.sizes() == delta.sizes(), "a delta of shape ", delta.sizes(), " for a tensor of shape ",
      base.sizes());
  const auto dtype = base.scalar_type();
  const bool both = (dtype == at::kDouble) == (stored == at::kDouble);
  require(
      is_added(dtype) && is_added(stored) && both, "dtype ", dtype,
      dtype == stored ? "" : c10::str(", to be stored as ", stored),
      ": a delta can only be added to float16, bfloat16, float32 and float64");
  switch (stored) {
    case at::kHalf:
      return add_as<at::Half>(base, delta, alpha);
    case at::kBFloat16:
      return add_as<at::BFloat16>(base, delta, alpha);
    case at::kDouble:
      return add_all<double, double>(base, delta, alpha);
    default:
      return add_as<float>(base, delta, alpha);
  }
}

Sum add_delta(const at::Tensor& base, const at::Tensor& delta, double alpha) {
  return add_delta(base, delta, alpha, base.scalar_type());
}

}  // namespace theseus::output
