#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "theseus/transport/schedule.h"

namespace theseus::transport {

// What one stage of the walk costs: operations, and bytes of memory.
struct StageCost {
  double forward = 0, statistics = 0, solve = 0, solve_small = 0, carry = 0;
  int64_t weights = 0;   // both blocks in float32; dropped before the maps are solved
  int64_t rows = 0;      // activations while a batch runs, and the rows that are seen of it
  int64_t moments = 0;   // sums, or rows that are kept: until the stage is carried
  int64_t solving = 0;   // what solving holds beside the moments
  int64_t maps = 0;      // of the stage
  int64_t carrying = 0;  // what carrying holds beside moments, maps and what arrived
  int64_t arrived = 0;   // until the group is written
  int64_t factored = 0;  // maps
  int64_t files = 0;     // what an alignment keeps of it: maps and sums
};

class Estimator {
 public:
  explicit Estimator(const ScheduleInput& input);

  int64_t stages() const { return static_cast<int64_t>(in_.route.pairs.size()) + 2; }
  StageCost stage(int64_t stage) const;
  // Hidden states of both models.
  int64_t state_bytes(int64_t sequences) const;
  // Embeddings and heads, which stay.
  int64_t outer_weights() const;

 private:
  int64_t placed(int64_t float32) const;
  struct Blocks {
    int64_t source, target;  // model::kOuter for the stages at the ends
  };
  struct Widths {
    int64_t source, target;
  };
  void add_forward(
      const model::Architecture& model, bool is_source, int64_t block, StageCost&) const;
  void add_observed(const std::string& space, const Blocks&, StageCost&, int64_t& widest) const;
  void add_solved(const std::string& space, const Blocks&, StageCost&) const;
  void add_solved_from_rows(
      const std::string& space, const std::string& seen, const Blocks&, StageCost&) const;
  void add_carried(const Load& load, const Blocks&, StageCost&) const;
  Widths widths(const std::string& space, int64_t source_block) const;
  // The space itself where its rows are kept, or the input of the layer that writes it where its are; empty.
  std::string find_kept(const std::string& space) const;
  int64_t rows_of(const std::string& space) const;
  // Columns of a map's factors; 0: it is a matrix.
  int64_t columns_of(const std::string& space, const Blocks&) const;
  double apply(const std::string& space, const Blocks&, double rows) const;

  const ScheduleInput& in_;
  std::map<int64_t, int64_t> source_weights_, target_weights_;  // bytes by block
};

}  // namespace theseus::transport
