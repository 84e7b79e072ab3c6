#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "theseus/transport/plan.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {

// What an alignment costs, in floating-point operations and bytes, before anything runs.
struct Cost {
  double forward = 0;
  double statistics = 0;
  double solve = 0;
  double solve_small = 0;  // of these, what is decomposed and not iterated on; see maps::kSmall
  double carry = 0;
  int64_t peak = 0;    // bytes of memory
  int64_t states = 0;  // bytes of hidden states between groups
  int64_t files = 0;   // bytes of maps and moments, where they are kept
  int64_t saved = 0;   // bytes of states, sums and rows that a job goes on from, each time
};

// Stages of the walk in groups: each group's statistics are collected over all batches, then solved
// and freed. Hidden states at the entry of a group are kept in memory, or in files when `spill`.
struct Schedule {
  std::vector<std::pair<int64_t, int64_t>> groups;  // first stage, one past the last
  bool spill = false;
  int64_t kept = 0, summed = 0;  // spaces whose rows are kept, and whose moments are summed up
  int64_t factored = 0;          // maps that will be factors
  Cost cost;
};

struct ScheduleInput {
  const model::Architecture& source;
  const model::Architecture& target;
  const stats::Route& route;
  SpaceSet observed;                            // see Solver::observed_for
  SpaceSet kept = {};                           // of these, those whose rows are kept
  SpaceSet needed;                              // maps to be solved
  std::map<std::string, int64_t> columns = {};  // columns of factors for each row; see Solver
  stats::Grams grams;
  std::map<std::string, int64_t> source_tokens, target_tokens;  // a sequence, by tower
  std::map<std::string, int64_t> rows = {};  // of all sequences, by tower; empty: as many as tokens
  int64_t batch_size = 0;
  int64_t sequences = 0;
  int64_t state_element = 4;  // bytes of a number in a hidden state
  // What comes before the blocks is walked with the first of them, so that examples are read while it computes; and up to
  // three groups are there at once: one is walked, one waits, one is solved.
  bool gpu = false;
  // Processes that share the sequences and solve the blocks of a group side by side: as many, then, as
  // memory allows.
  int64_t processes = 1;
  std::vector<Load> loads = {};  // what is carried through the maps; empty: nothing is
};

// Groups as small as the target's blocks when the hidden states fit `memory` beside them: nothing is
// computed twice either way, and small groups hold the fewest statistics. Otherwise states go to
// files, and groups are as large as `memory` allows. Throws InputError when a single block does not
// fit, saying how much it needs. `memory` is that of one process, and so is the peak.
Schedule make_schedule(const ScheduleInput& input, int64_t memory);

// Bytes that this machine has free for us; of a GPU what was free when this process first asked, as libtorch keeps what it had.
int64_t available_memory(c10::Device device = c10::kCPU);

}  // namespace theseus::transport
