#pragma once

#include <map>
#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::tests {

// The part of a transported update of an OpenCLIP vision tower that every correct program agrees on,
// in float64; after ../shared/golden/unique.py. LayerNorm outputs lie in {gain * n + bias : sum(n) = 0}:
// d - 1 directions about their mean, d with it. So centred statistics of norm outputs and of q, k and
// v miss one direction, and the first MLP layer's output fills only d (raw) or d - 1 (centred) of 4 d.
// `target`: the target's base tensors by name. None where nothing can be said without activations.
std::optional<at::Tensor> unique_part(
    const std::string& name,
    const at::Tensor& update,
    const std::map<std::string, at::Tensor>& target,
    bool centred,
    bool widening);

}  // namespace theseus::tests
