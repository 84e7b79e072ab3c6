// Seeded changes of relative size 0.05 per tensor. Where outputs y = W x + b span fewer directions
// than their space has, the change stays within them: delta_W = W P G, delta_b = W P g. P projects on
// the differences of inputs: behind a LayerNorm, x = gain * n + shift with sum(n) = 0, these are
// orthogonal to 1 / gain, and shift and b are seen only together, in W shift + b.

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "tests/support/planted_maps.h"

namespace theseus::tests {
namespace {

constexpr double kSize = 0.05;

const model::Parameter* find_writer(
    const model::Architecture& architecture, const std::string& space) {
  for (const auto& parameter : architecture.parameters) {
    const auto reads = reading_axis(architecture, parameter);
    if (reads && parameter.axes[1 - *reads] == space) {
      return &parameter;
    }
  }
  return nullptr;
}

class Changer {
 public:
  Changer(const model::Architecture& architecture, const Tensors& base, const PlantOptions& options)
      : architecture_(architecture), base_(base), options_(options) {}

  at::Tensor delta(const model::Parameter& parameter) const {
    const auto& value = base_.at(parameter.name);
    const auto& space = written_space(parameter);
    const auto random = generator_of(options_.seed, "change " + parameter.name);
    const auto* writer = confined(space);
    at::Tensor drawn;
    if (writer == nullptr) {
      drawn = at::randn(value.sizes(), random, at::kDouble);
    } else {
      const auto weight = out_by_in(*writer).matmul(differences(*writer));
      const bool matrix = value.dim() == 2;
      const auto inputs = weight.size(1);
      drawn = weight.matmul(
          matrix ? at::randn({inputs, inputs}, random, at::kDouble)
                 : at::randn({inputs}, random, at::kDouble));
      drawn = matrix && reading_axis(architecture_, parameter) == 0U ? drawn.t() : drawn;
    }
    return drawn * (kSize * value.norm() / drawn.norm());
  }

 private:
  const std::string& written_space(const model::Parameter& parameter) const {
    const auto reads = reading_axis(architecture_, parameter);
    return parameter.axes[reads ? 1 - *reads : 0];
  }

  at::Tensor out_by_in(const model::Parameter& weight) const {
    const auto& value = base_.at(weight.name);
    return *reading_axis(architecture_, weight) == 0 ? value.t() : value;
  }

  // P of what a weight reads. [in, in]
  at::Tensor differences(const model::Parameter& weight) const {
    const auto reads = *reading_axis(architecture_, weight);
    const auto identity = at::eye(weight.shape[reads], at::kDouble);
    const auto& space = weight.axes[reads];
    const model::Parameter* gain = nullptr;
    bool centred = false;
    for (const auto& parameter : architecture_.parameters) {
      if (parameter.axes == std::vector{space}) {
        gain = parameter.role == model::Role::kGain ? &parameter : gain;
        centred |= parameter.role == model::Role::kShift;
      }
    }
    if (gain == nullptr || !centred) {
      return identity;
    }
    const auto unseen = base_.at(gain->name).reciprocal();
    return identity - at::outer(unseen, unseen) / unseen.square().sum();
  }

  // The weight in whose span changes of `space` must stay, or null.
  const model::Parameter* confined(const std::string& space) const {
    const auto* writer = find_writer(architecture_, space);
    const auto known = architecture_.spaces.find(space);
    const bool seen_behind = known != architecture_.spaces.end() && !known->second.behind.empty();
    if (writer == nullptr || (seen_behind && !options_.confine_mlp)) {
      return nullptr;
    }
    const auto weight = out_by_in(*writer);
    return weight.size(0) > weight.size(1) ? writer : nullptr;
  }

  const model::Architecture& architecture_;
  const Tensors& base_;
  const PlantOptions& options_;
};

bool is_changed(const model::Parameter& parameter, Planting planting, Changes changes) {
  const bool mapped = !parameter.axes.empty() &&
                      std::none_of(parameter.axes.begin(), parameter.axes.end(), model::is_fixed);
  switch (parameter.role) {
    case model::Role::kTable:
      return false;
    case model::Role::kWeight:
      return mapped;
    case model::Role::kGain:
      return mapped && changes == Changes::kAll && planting != Planting::kRotated;
    case model::Role::kBias:
    case model::Role::kShift:
      return mapped && changes == Changes::kAll;
  }
  return false;
}

}  // namespace

Tensors changed(
    const model::Architecture& architecture,
    const Tensors& base,
    Planting planting,
    const PlantOptions& options) {
  auto result = base;
  const Changer changer(architecture, base, options);
  for (const auto& parameter : architecture.parameters) {
    if (is_changed(parameter, planting, options.changes)) {
      result[parameter.name] = base.at(parameter.name) + changer.delta(parameter);
    }
  }
  return result;
}

}  // namespace theseus::tests
