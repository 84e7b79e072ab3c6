// Every axis of a delta goes through the map of its space:
//
//   weight   delta_t = T_out^T delta T_in        bias   delta_t = delta T_out
//   gain     delta_t[j] = sum_i T_out[i, j] T_in[i, j] delta[i]
//   factors  up_t = T_out^T up,  down_t = down T_in, same rank, same scale
//
// whatever the order in which a tensor stores its axes.

#include "theseus/transport/carry.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/base/bring.h"
#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/update/norm.h"

namespace theseus::transport {
namespace {

using update::norm_of;

// FNV-1a: the same on every machine.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

at::Tensor gaussian(at::IntArrayRef shape, double norm, uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  const auto noise = at::randn(shape, generator, at::kFloat);
  return noise * (norm / norm_of(noise));
}

const maps::Map& map_of(const MapSet& maps, const std::string& space, int64_t width) {
  const auto found = maps.find(space);
  require<InternalError>(found != maps.end(), "there is no map of ", space);
  const auto& map = found->second;
  require<InternalError>(
      map.source_width() == width, "the map of ", space, " is from ", map.source_width(), " to ",
      map.target_width(), " for a width of ", width);
  return map;
}

at::Tensor put_on(const at::Tensor& value, c10::Device device) {
  return value.device() == device ? value : bring(value, device);
}

// Axis `axis` of `value` through T, where T is: in float64 where that is as fast, as float32 products may be rounded there
// meanwhile (Tf32).
at::Tensor through(const at::Tensor& value, const maps::Map& map, int64_t axis) {
  const auto dtype = dtype_of_products(map.device());
  const auto delta = put_on(value, map.device()).to(dtype);
  if (map.factors.defined()) {
    const auto factors = map.factors.to(dtype);
    if (delta.dim() == 1) {
      return factors.after(delta.unsqueeze(0)).squeeze(0);
    }
    return axis == 0 ? factors.transposed().before(delta) : factors.after(delta);
  }
  const auto matrix = map.matrix.to(dtype);
  if (delta.dim() == 1) {
    return at::mv(matrix.t(), delta);
  }
  return axis == 0 ? at::mm(matrix.t(), delta) : at::mm(delta, matrix);
}

// Rows begin .. begin + count - 1 of T.
at::Tensor rows_of(const maps::Map& map, int64_t begin, int64_t count) {
  return map.factors.defined()
             ? map.factors.to(dtype_of_products(map.device())).rows(begin, count)
             : map.matrix.narrow(0, begin, count).to(dtype_of_products(map.device()));
}

// A gain stays a gain. Factors become a matrix for some rows at a time.
at::Tensor through_diagonal(const at::Tensor& gain, const maps::Map& out, const maps::Map& in) {
  const auto delta = put_on(gain, out.device()).to(dtype_of_products(out.device()));
  const auto width = delta.size(0);
  const bool whole = !out.factors.defined() && !in.factors.defined();
  const auto some = whole ? width : std::min<int64_t>(width, 512);
  at::Tensor sum;
  for (int64_t begin = 0; begin < width; begin += some) {
    const auto count = std::min(some, width - begin);
    const auto both = rows_of(out, begin, count) * rows_of(in, begin, count);
    const auto part = at::mv(both.t(), delta.narrow(0, begin, count));
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

// An axis of labels or vocabulary stays as it is.
Carried through_maps(
    const update::LowRank& factors, const model::Parameter& target, const MapSet& maps) {
  const auto carried = [&](const at::Tensor& factor, int64_t axis) {
    const auto& space = target.axes[static_cast<size_t>(axis)];
    if (model::is_fixed(space)) {
      return factor;
    }
    const auto value = through(factor, map_of(maps, space, factor.size(axis)), axis);
    return put_on(value.to(at::kFloat), at::kCPU);
  };
  Carried result{.source_norm = factors.norm()};
  result.factors = update::LowRank{
      .up = carried(factors.up, 0), .down = carried(factors.down, 1), .scale = factors.scale};
  result.target_norm = result.factors->norm();
  return result;
}

// Ranks side by side: scale_1 U_1 D_1 + scale_2 U_2 D_2.
update::LowRank side_by_side(const update::LowRank& first, const update::LowRank& second) {
  return {
      .up = at::cat({first.up, second.up * (second.scale / first.scale)}, 1),
      .down = at::cat({first.down, second.down}, 0),
      .scale = first.scale};
}

}  // namespace

at::Tensor Carried::dense() const {
  return factors ? factors->product() : delta;
}

Carrier::Carrier(
    const SourceUpdate& update,
    const model::Architecture& source,
    const stats::Route& route,
    const std::vector<Disposition>& plan,
    maps::Carries what,
    uint64_t seed)
    : update_(update), source_(source), route_(route), plan_(plan), what_(what), seed_(seed) {}

std::vector<std::pair<const model::Parameter*, double>> Carrier::parts(
    const Disposition& row, int64_t stage) const {
  if (row.target->block == model::kOuter) {
    return {{row.source, 1.0}};
  }
  const auto& pair = route_.pairs[static_cast<size_t>(stage - 1)];
  const auto& block = route_.source[static_cast<size_t>(pair.source)];
  const auto role = source_.role(row.source->name, row.source->block);
  std::vector<std::pair<const model::Parameter*, double>> result;
  for (const auto& [part, share] : block.parts) {
    const auto* parameter = source_.find_parameter(role, part);
    require<InternalError>(parameter != nullptr, "block ", part, " has no ", role);
    result.emplace_back(parameter, share * pair.share);
  }
  return result;
}

Carrier::Delta Carrier::delta_of(const Disposition& row, int64_t stage, c10::Device device) const {
  const auto all = parts(row, stage);
  Delta sum;
  for (const auto& [parameter, share] : all) {
    if (const auto delta = update_.find_delta(*parameter, device); delta.defined()) {
      const auto term = share == 1 ? delta : delta * share;
      sum.value = sum.value.defined() ? sum.value + term : term;
    }
  }
  if (sum.value.defined()) {
    const bool known = all.size() == 1 && all.front().second == 1 && !update_.is_adapter();
    sum.norm = known ? update_.delta_norm(*all.front().first, device) : norm_of(sum.value);
  }
  return sum;
}

std::optional<update::LowRank> Carrier::factors_of(const Disposition& row, int64_t stage) const {
  std::optional<update::LowRank> sum;
  for (const auto& [parameter, share] : parts(row, stage)) {
    auto factors = update_.find_low_rank(*parameter);
    if (factors) {
      factors->scale *= share;
      sum = sum ? side_by_side(*sum, *factors) : *factors;
    } else if (update_.changes(*parameter)) {
      return std::nullopt;  // another block's tensor is replaced as a whole: the sum has no factors
    }
  }
  return sum;
}

Carried Carrier::carried(
    const Disposition& row, const Delta& delta, const MapSet& maps, int64_t stage) const {
  Carried result{.source_norm = delta.norm};
  const auto seed = seed_ ^ hash_of(row.target->name) ^ (static_cast<uint64_t>(stage) << 48);
  if (what_ == maps::Carries::kNoise) {
    result.delta = gaussian(row.target->shape, result.source_norm, seed);
    result.target_norm = result.source_norm;
    return result;
  }
  auto value = what_ == maps::Carries::kRandomUpdate
                   ? gaussian(delta.value.sizes(), result.source_norm, seed)
                   : delta.value;
  if (row.diagonal) {
    value = through_diagonal(
        value, map_of(maps, row.maps[0], value.size(0)), map_of(maps, row.maps[1], value.size(0)));
  } else {
    for (size_t axis = 0; axis < row.target->axes.size(); ++axis) {
      const auto& space = row.target->axes[axis];
      if (!model::is_fixed(space)) {
        const auto dimension = static_cast<int64_t>(axis);
        value = through(value, map_of(maps, space, value.size(dimension)), dimension);
      }
    }
  }
  value = value.to(at::kFloat);
  result.target_norm = norm_of(value);
  result.delta = put_on(value, at::kCPU).contiguous();
  return result;
}

void Carrier::carry(
    int64_t stage, const MapSet& maps, std::map<std::string, Carried>& result) const {
  const bool last = stage == static_cast<int64_t>(route_.pairs.size()) + 1;
  const auto block =
      stage == 0 || last ? model::kOuter : route_.pairs[static_cast<size_t>(stage - 1)].target;
  const auto device = maps.empty() ? c10::Device(c10::kCPU) : maps.begin()->second.device();
  for (const auto& row : plan_) {
    if (!row.carried || row.target->block != block || stage == 0) {
      continue;
    }
    with_context("carrying " + row.target->name, [&] {
      Carried now;
      const auto factors = what_ == maps::Carries::kUpdate ? factors_of(row, stage) : std::nullopt;
      if (factors) {
        now = through_maps(*factors, *row.target, maps);
      } else if (const auto delta = delta_of(row, stage, device); delta.value.defined()) {
        now = carried(row, delta, maps, stage);
      } else {
        return;
      }
      const auto [place, first] = result.try_emplace(row.target->name, now);
      if (first) {
        return;
      }
      auto& sum = place->second;  // several source blocks serve this one
      if (sum.factors && now.factors) {
        sum.factors = side_by_side(*sum.factors, *now.factors);
        sum.target_norm = sum.factors->norm();
      } else {
        sum.delta = sum.dense() + now.dense();
        sum.factors.reset();
        sum.target_norm = norm_of(sum.delta);
      }
      sum.source_norm = std::hypot(sum.source_norm, now.source_norm);
    });
  }
}

}  // namespace theseus::transport
