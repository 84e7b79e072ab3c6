#include "theseus/train/random_values.h"

#include <cmath>
#include <numbers>

#include <ATen/ATen.h>

#include "theseus/data/shuffle.h"

namespace theseus::train {
namespace {

data::Random random_of(uint64_t seed, uint64_t stream) {
  data::Random seeds(seed);
  data::Random streams(seeds.next() ^ stream);
  return data::Random(streams.next());
}

// In (0, 1).
double next_share(data::Random& random) {
  return (static_cast<double>(random.next() >> 11) + 0.5) * 0x1p-53;
}

template <class Draw>
at::Tensor filled(at::IntArrayRef shape, const Draw& draw) {
  auto values = at::empty(shape);
  auto* out = values.data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) {
    out[i] = static_cast<float>(draw());
  }
  return values;
}

}  // namespace

at::Tensor random_normal(at::IntArrayRef shape, double deviation, uint64_t seed, uint64_t stream) {
  auto random = random_of(seed, stream);
  return filled(shape, [&] {
    const double radius = std::sqrt(-2 * std::log(next_share(random)));
    return deviation * radius * std::cos(2 * std::numbers::pi * next_share(random));
  });
}

at::Tensor random_uniform(at::IntArrayRef shape, double bound, uint64_t seed, uint64_t stream) {
  auto random = random_of(seed, stream);
  return filled(shape, [&] { return bound * (2 * next_share(random) - 1); });
}

}  // namespace theseus::train
