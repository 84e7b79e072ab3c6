// seconds = start + sum over kinds of work of  operations / (rate of products * efficiency) + bytes / rate of files
//
// The efficiencies say how much of the rate of large products each kind of work reached where it was measured
// (bench/plan_time.py): a pass also computes what is no product, and a decomposition is none. Large polar factors take
// fewer operations than the decomposition that is counted for them, most of them in float32.

#include "theseus/transport/duration.h"

#include "theseus/base/rates.h"

namespace theseus::transport {
namespace {

constexpr double kStart = 1;           // libraries, opening files
constexpr double kBytesASecond = 1e9;  // read from and written to files
constexpr double kForward = 0.5, kStatistics = 0.6, kSolveSmall = 0.3, kSolveLarge = 1.1,
                 kCarry = 0.7;

}  // namespace

Rates measure_rates(c10::Device device, c10::ScalarType dtype_of_passes) {
  Rates rates;
  rates.float32 = product_rate(device, c10::kFloat);
  rates.float64 = product_rate(device, c10::kDouble);
  rates.passes =
      dtype_of_passes == c10::kFloat ? rates.float32 : product_rate(device, dtype_of_passes);
  return rates;
}

double carrying_cost(const std::vector<Load>& loads) {
  double cost = 0;
  for (const auto& load : loads) {
    const auto &from = load.source->shape, &to = load.target->shape;
    for (size_t axis = 0; axis < 2 && from.size() == 2 && to.size() == 2; ++axis) {
      const auto other = axis == 0 ? from[1] : to[0];  // the first axis is carried first
      const auto rows = load.rank > 0 ? load.rank : other;
      cost += model::is_fixed(load.target->axes[axis])
                  ? 0
                  : 2.0 * static_cast<double>(rows) * static_cast<double>(from[axis] * to[axis]);
    }
  }
  return cost;
}

double seconds_of(const Cost& cost, int64_t bytes, const Rates& rates) {
  return kStart + cost.forward / (kForward * rates.passes) +
         cost.statistics / (kStatistics * rates.float32) +
         cost.solve_small / (kSolveSmall * rates.float64) +
         (cost.solve - cost.solve_small) / (kSolveLarge * rates.float64) +
         cost.carry / (kCarry * rates.float32) + static_cast<double>(bytes) / kBytesASecond;
}

}  // namespace theseus::transport
