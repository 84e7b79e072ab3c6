#pragma once

#include <functional>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "theseus/cluster/processes.h"
#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/stats/matcher.h"

namespace theseus::transport {

// How alike the outputs of the two models' blocks are: linear CKA of centred rows
//
//   CKA(S, R) = |S^T R|_F^2 / (|S^T S|_F |R^T R|_F),
//
// in [0, 1], from moments that are summed over batches. Where the widths of all blocks together exceed
// some thousands, streams are first projected by fixed independent Gaussian
// matrices, which leaves the three squared norms unchanged on average.
// [source blocks, target blocks] float64; 0 for towers that the calibration does not reach, and
// between towers. Several processes take a share of the batches each and get the same numbers.
at::Tensor block_similarity(
    model::Model& source,
    model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers,
    const std::function<void(int64_t done, int64_t all)>& watch,
    const cluster::Processes& processes = cluster::alone());

// Whether streams are projected for that, so that similarities are uncertain by some percent.
bool is_estimated(const model::Architecture& source, const model::Architecture& target);

}  // namespace theseus::transport
