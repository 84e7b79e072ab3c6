#include "theseus/transport/rows_kept.h"

#include <algorithm>

#include "theseus/stats/moments.h"

namespace theseus::transport {
namespace {

// Of all spaces of that role; 0: there is none.
int64_t narrowest(const model::Architecture& architecture, const std::string& role) {
  int64_t width = 0;
  for (const auto& [name, space] : architecture.spaces) {
    if (model::role_of(name) == role) {
      width = width == 0 ? space.width : std::min(width, space.width);
    }
  }
  return width;
}

}  // namespace

SpaceSet rows_kept(
    const SpaceSet& observed,
    const model::Architecture& source,
    const model::Architecture& target,
    const std::map<std::string, int64_t>& rows,
    Statistics statistics) {
  SpaceSet kept;
  std::map<std::string, int64_t> widths;  // by role: blocks are alike
  for (const auto& space : observed) {
    const auto found = rows.find(model::tower_of_space(space));
    if (found == rows.end() || statistics == Statistics::kMoments) {
      continue;
    }
    const auto role = model::role_of(space);
    const auto [place, first] = widths.try_emplace(role, 0);
    if (first) {
      place->second = std::min(narrowest(source, role), narrowest(target, role));
    }
    const auto width = place->second;
    // Narrower spaces have Gram matrices, which say what is rounding.
    const bool wide = statistics == Statistics::kRows || width > stats::kGramsAnyway;
    if (wide && found->second < width) {
      kept.insert(space);
    }
  }
  return kept;
}

}  // namespace theseus::transport
