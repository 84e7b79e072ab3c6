#pragma once

#include <map>
#include <vector>

#include "theseus/gradient/gradients.h"
#include "theseus/stats/walk.h"

namespace theseus::stats {

// Moments of paired gradients dL/dy, y what a linear layer writes, for every stage of a walk; by the
// target's name of the space. Rows are paired as activations are, so where the two models' tokens differ
// gradients are resampled likewise (as the public reference does; a gradient is no mean over tokens, so
// this is a choice). Only rows that are not zero in both models count as distinct: the last block of an
// image model has gradients at one token alone.
class GradientMoments {
 public:
  // `collect.observed`: the target's spaces that linear layers write. Models and route as for Walk.
  GradientMoments(model::Model& source, model::Model& target, const Route& route, Collect collect);

  // Both models whole, forward and back, one after the other. All outputs of the layers in question are in
  // memory. Throws NumericError when a loss or a gradient is not finite.
  void add(const Calibration& calibration, int64_t batch);

  // Spaces that no loss reaches are not there.
  const std::map<int64_t, Moments>& result() const { return moments_; }

 private:
  // A layer of the target that writes `space`, and the source's in its place.
  struct Writer {
    const model::Linear* source;
    const model::Linear* target;
    size_t part;  // of their outputs
    int64_t stage;
    size_t source_step, target_step;
  };
  void find_writers();
  void add_pair(
      const Writer& writer,
      const gradient::StepGradients& source,
      const gradient::StepGradients& target,
      const PairedBatch& inputs);
  gradient::Steps source_steps();

  model::Model& source_;
  model::Model& target_;
  Route route_;
  Collect collect_;
  gradient::Loss source_loss_, target_loss_;  // made with the first batch
  std::vector<Writer> writers_;
  std::map<int64_t, Moments> moments_;
};

}  // namespace theseus::stats
