#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace theseus::stats {

// A block as the source runs it: one of its own, or, in a stretched source, a mean of neighbours.
// Blocks are those of all towers counted through.
struct SourceBlock {
  int64_t run_as = 0;                             // whose place in the network it takes
  std::vector<std::pair<int64_t, double>> parts;  // its parameters: sum of share times block

  bool own() const { return parts.size() == 1 && parts[0].first == run_as; }
};

// The update of `source` goes to `target`, times `share`.
struct BlockPair {
  int64_t source = 0;  // index into Route::source
  int64_t target = 0;  // block
  double share = 1;
};

// How the source's blocks correspond to the target's. Pairs never go back in either model, and every
// block of both takes part.
struct Route {
  std::vector<SourceBlock> source;
  std::vector<BlockPair> pairs;
};

}  // namespace theseus::stats
