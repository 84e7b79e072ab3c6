#pragma once

#include <cstdint>
#include <map>

#include <c10/core/Device.h>

#include "theseus/cluster/processes.h"
#include "theseus/stats/walk.h"

namespace theseus::stats {

// Moments by stage of this process's batches become those of all batches, in every process, on
// `device`. A process may have seen none; the first has seen every space. Sums of float64 in another order than that of
// one process: they agree with its to rounding, and to the bit when there are no more than two batches. Rows that are kept
// come by rank.
void add_up(
    const cluster::Processes& processes, c10::Device device, std::map<int64_t, Moments>& moments);

}  // namespace theseus::stats
