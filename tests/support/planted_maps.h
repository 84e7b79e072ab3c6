#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"

#include "tests/support/planted.h"

// What planted.cpp is made of; tests include planted.h.
namespace theseus::tests {

// float64, by name of the parameter (parts of fused tensors apart).
using Tensors = std::map<std::string, at::Tensor>;

// The same stream of numbers for the same seed and word, whatever else is drawn.
at::Generator generator_of(uint64_t seed, const std::string& word);

// Where activations x of the source go: x_t = E x. By space, E [dt, ds], float64: a rotation, or one
// entry 1 in each row and `copies` of them in each column. T5's tables of relative positions have an
// axis "<head>" that follows the heads of their stack: its E stands under "encoder.<head>" and
// "decoder.<head>".
struct PlantingMaps {
  int64_t copies = 1;
  std::map<std::string, at::Tensor> expand;
};
PlantingMaps planting_maps(const model::Model& source, Planting planting, uint64_t seed);

// The key of `expand` for an axis of a parameter; empty: the axis stays.
std::string map_key(const model::Parameter& parameter, size_t axis);

// The axis along which a linear layer's weight reads; none for what is no such weight.
std::optional<size_t> reading_axis(
    const model::Architecture& architecture, const model::Parameter& parameter);

// `base` with the changes that PlantOptions describe; others share its tensors.
Tensors changed(
    const model::Architecture& architecture,
    const Tensors& base,
    Planting planting,
    const PlantOptions& options);

}  // namespace theseus::tests
