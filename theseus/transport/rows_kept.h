#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "theseus/model/family.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {

// What is collected of a space: second moments, or the paired rows themselves, which are smaller where there
// are fewer of them than the space is wide; then the map is kept as factors where these are smaller than a
// matrix. kRows: wherever there are fewer than the space is wide; kAuto: there, where the space is also wider than 256.
enum class Statistics { kAuto, kMoments, kRows };

// Of the spaces in `observed` those whose rows are kept. `rows`: how many there will be at most, by tower.
SpaceSet rows_kept(
    const SpaceSet& observed,
    const model::Architecture& source,
    const model::Architecture& target,
    const std::map<std::string, int64_t>& rows,
    Statistics statistics);

}  // namespace theseus::transport
