#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "theseus/base/stopwatch.h"
#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/stats/capture.h"
#include "theseus/stats/matcher.h"
#include "theseus/stats/moments.h"
#include "theseus/stats/route.h"

namespace theseus::stats {

// By the target's name of the space.
using Moments = std::map<std::string, PairMoments>;

// Both models between two stages of a walk, for one batch.
struct WalkState {
  std::map<std::string, at::Tensor> source, source_kept, target, target_kept;
};

struct Collect {
  std::map<std::string, const Matcher*> matchers;  // by tower
  Grams grams;
  std::set<std::string> observed;   // the target's spaces whose moments are wanted
  std::set<std::string> kept = {};  // of these, those whose rows are kept instead
};

// The two models in step. Stage 0 is what comes before the blocks, then one stage for every pair of
// blocks, then what comes after them.
class Walk {
 public:
  Walk(model::Model& source, model::Model& target, const Route& route, Collect collect);

  int64_t stages() const { return static_cast<int64_t>(route_.pairs.size()) + 2; }

  // Runs stages first .. last - 1 for one batch from `state` (anything for stage 0), leaves in it
  // what stage `last` needs, and adds the moments of each to moments[stage]. Throws InputError when
  // the batch does not fit the models, NumericError when activations are not finite; on a GPU require_finite()
  // does that, for all batches at once.
  void run(
      int64_t first,
      int64_t last,
      const PairedBatch& batch,
      WalkState& state,
      std::map<int64_t, Moments>& moments);
  // Frees the weights that stages first .. last - 1 brought in.
  void drop(int64_t first, int64_t last);
  // Spent so far on "forward" and "statistics".
  const Seconds& seconds() const { return seconds_; }

 private:
  struct Side;
  using Rows = std::map<std::string, at::Tensor>;
  void step(int64_t stage, Side& source, Side& target);
  void add(int64_t stage, Side& source, Side& target, Moments& moments);
  Sequences sequences(const Side& side, const std::string& tower, const at::Tensor& rows) const;

  model::Model& source_;
  model::Model& target_;
  Route route_;
  Collect collect_;
  Capture source_capture_, target_capture_;
  Seconds seconds_;
  std::map<std::string, int64_t> outer_stage_;  // where a space of no block is accumulated
};

// Throws NumericError when an activation was not finite. Waits for the device.
void require_finite(const std::map<int64_t, Moments>& moments);

// Runs a block of the source as `block` describes it: with means of weights for the time being.
void run_source_block(model::Model& source, const SourceBlock& block, model::Pass& pass);

// The value of `parameter_tensor` of block `block.run_as` in the source that `block` describes, in
// float32 on the CPU.
at::Tensor blended(const model::Model& source, const SourceBlock& block, const std::string& tensor);

}  // namespace theseus::stats
