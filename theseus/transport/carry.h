#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "theseus/maps/method.h"
#include "theseus/transport/plan.h"
#include "theseus/transport/solve.h"
#include "theseus/transport/source_update.h"

namespace theseus::transport {

// The update of one parameter of the target: whole, or as factors.
struct Carried {
  at::Tensor delta;                        // float32, the parameter's shape; undefined: factors
  std::optional<update::LowRank> factors;  // delta = scale * up down
  double source_norm = 0;                  // of what was carried, shares of blocks counted in
  double target_norm = 0;
  // Where it is masked: the share of its entries that had the sign of the target's way down before.
  std::optional<double> agreement = std::nullopt;

  at::Tensor dense() const;
};

// Carries the source's update through maps, one stage of the walk at a time.
class Carrier {
 public:
  Carrier(
      const SourceUpdate& update,
      const model::Architecture& source,
      const stats::Route& route,
      const std::vector<Disposition>& plan,
      maps::Carries what,
      uint64_t seed);

  // Adds what stage `stage` gives to its parameters (the last stage: to those of no block).
  // Parameters that the update leaves unchanged do not appear. Throws InternalError when a map is
  // missing or has another shape.
  void carry(int64_t stage, const MapSet& maps, std::map<std::string, Carried>& result) const;

 private:
  // The parts of the source's update that go to one parameter, each with its factor.
  std::vector<std::pair<const model::Parameter*, double>> parts(
      const Disposition& row, int64_t stage) const;
  struct Delta {
    at::Tensor value;  // undefined: there is none
    double norm = 0;
  };
  Delta delta_of(const Disposition& row, int64_t stage, c10::Device device) const;
  std::optional<update::LowRank> factors_of(const Disposition& row, int64_t stage) const;
  Carried carried(
      const Disposition& row, const Delta& delta, const MapSet& maps, int64_t stage) const;

  const SourceUpdate& update_;
  const model::Architecture& source_;
  stats::Route route_;
  const std::vector<Disposition>& plan_;
  maps::Carries what_;
  uint64_t seed_;
};

}  // namespace theseus::transport
