#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <utility>

#include "theseus/cluster/processes.h"
#include "theseus/transport/resume.h"
#include "theseus/transport/schedule.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {

// What the processes of one alignment must do alike is decided by the first one; see Processes.

SpaceSet agreed(const cluster::Processes& processes, const SpaceSet& spaces);
Schedule agreed(const cluster::Processes& processes, const Schedule& schedule);
std::filesystem::path agreed(
    const cluster::Processes& processes, const std::filesystem::path& path);
void agree(const cluster::Processes& processes, Position& position, stats::Moments& outer);

// The spaces of `needed`, by stage first .. last - 1, whose maps this process solves: the dearest first,
// each to who has least to do. Spaces stay with the one that says what their statistics leave open, and
// those of a stage together where `whole_stages`.
std::map<int64_t, SpaceSet> share_of(
    const cluster::Processes& processes,
    const Solver& solver,
    std::pair<int64_t, int64_t> stages,
    const SpaceSet& needed,
    bool whole_stages);

// The maps of all processes in the first one, on its device; elsewhere none.
MapSet gathered(const cluster::Processes& processes, const MapSet& maps, c10::Device device);

}  // namespace theseus::transport
