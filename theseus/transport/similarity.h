#pragma once

#include <functional>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/stats/matcher.h"

namespace theseus::transport {

// How alike the outputs of the two models' blocks are: linear CKA of centred rows
//
//   CKA(S, R) = |S^T R|_F^2 / (|S^T S|_F |R^T R|_F),
//
// in [0, 1], from moments that are summed over batches. Streams wider than some hundred features are
// first projected by a fixed Gaussian matrix, which leaves the three norms unchanged on average.
// [source blocks, target blocks] float64; 0 for towers that the calibration does not reach, and
// between towers.
at::Tensor block_similarity(
    model::Model& source,
    model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers,
    const std::function<void(int64_t done, int64_t all)>& watch);

}  // namespace theseus::transport
