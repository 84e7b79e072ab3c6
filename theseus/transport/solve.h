#pragma once

#include <future>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "theseus/maps/method.h"
#include "theseus/model/model.h"
#include "theseus/stats/route.h"
#include "theseus/stats/walk.h"

namespace theseus::transport {

// By the target's name of the space.
using MapSet = std::map<std::string, maps::Map>;
using SpaceSet = std::set<std::string>;

// Turns the statistics of a walk's stages into maps. The moments of a linear layer's output follow
// from those of its input and the weights (METHOD: outputs need no statistics of their own).
class Solver {
 public:
  Solver(
      const model::Model& source,
      const model::Model& target,
      const stats::Route& route,
      const maps::Method& method,
      const maps::Options& options);

  // Spaces whose rows must be seen so that those of `needed` can be solved.
  SpaceSet observed_for(const SpaceSet& needed) const;
  // Those of `needed`, but for some the space whose map they have, too.
  SpaceSet solved_for(const SpaceSet& needed) const;
  // Those of `needed` that belong to `stage`: to its block, or to no block when `stage` is the last
  // one or its block reads them. Throws InputError when a map cannot be made with this method, NumericError when there is
  // no trustworthy one.
  MapSet solve(int64_t stage, const stats::Moments& moments, const SpaceSet& needed);

  // Spaces of `needed` whose maps are made from gradients where the loss reaches them.
  SpaceSet graded_for(const SpaceSet& needed) const;
  // Their moments, by stage. Before any solve().
  void use_gradients(std::map<int64_t, stats::Moments> gradients);

  // Where the rows of a space of `needed` are kept: columns of its map's factors for each of them. Spaces whose maps
  // are never factors are not there.
  std::map<std::string, int64_t> columns_of(const SpaceSet& needed) const;

  // Those of `needed` that solve() would solve for `stage`.
  SpaceSet belonging(int64_t stage, const SpaceSet& needed) const;
  // The space whose map comes first, so that this one's can use it: itself, when there is none.
  std::string find_root(const std::string& space) const;
  // Of solving a space's map, for comparison with that of others.
  double cost(const std::string& space, int64_t stage) const;

  // What `stage` knows of a space that belongs to it, without the prior.
  maps::Problem problem(
      const std::string& space, int64_t stage, const stats::Moments& moments) const;

  // Moments of spaces that belong to no block, which later stages may need; for resuming. solve() adds
  // those of its stage; who asks for problems alone does that himself.
  stats::Moments& outer() { return outer_; }
  void remember_outer(const stats::Moments& moments);

 private:
  struct Writer {
    const model::Linear* source;
    const model::Linear* target;
    size_t part;  // of the layer's outputs
  };
  // Adds to a sum that is undefined before its first term.
  static void accumulate(at::Tensor& sum, const at::Tensor& term);
  int64_t stages() const { return static_cast<int64_t>(route_.pairs.size()) + 2; }
  int64_t target_block(int64_t stage) const;
  const stats::SourceBlock* source_block(int64_t stage) const;
  bool belongs(const std::string& space, int64_t stage) const;
  // The space whose map says what the statistics of `space` leave open; empty: none.
  std::string find_behind(const std::string& space) const;
  // The space whose map is also that of `space`: with Options::stream, of what a layer adds to the residual
  // stream, the stream that a norm of the block reads: the one behind the sum, or the last. Empty: none.
  std::string find_stream(const std::string& space) const;
  // The one of these two that there is.
  std::string find_first(const std::string& space) const;
  std::vector<Writer> writers_of(const std::string& space, int64_t stage) const;
  const stats::PairMoments* find_moments(
      const std::string& space, const stats::Moments& moments) const;
  maps::Problem from_observed(const stats::PairMoments& moments) const;
  maps::Problem from_writers(
      const std::vector<Writer>& writers, int64_t stage, const stats::Moments& moments) const;
  // Likewise where the rows of all layers' inputs are kept.
  maps::Problem from_rows_of(
      const std::vector<Writer>& writers, int64_t stage, const stats::Moments& moments) const;
  // `known`: maps of the other axes; those that are missing are taken for identities.
  maps::Problem from_weights(const std::string& space, int64_t stage, const MapSet& known) const;
  // Of a space's rows, at most; `constant`: with a 1 beside each.
  int64_t directions_of(const model::Model& model, const std::string& space, bool constant) const;
  std::string own_space(const std::string& space, int64_t stage) const;  // the source's name for it
  void add_sizes(const std::string& space, int64_t stage, maps::Problem& problem) const;
  MapSet solve_by_weights(int64_t stage, const SpaceSet& needed) const;
  using Future = std::shared_future<std::optional<maps::Map>>;
  // The spaces and those behind them: these first, and what takes long before what does not.
  std::vector<std::string> in_turn(const SpaceSet& spaces, int64_t stage) const;
  // Nothing: the calibration does not reach it. Waits for the space behind it.
  std::optional<maps::Map> find_map(
      const std::string& space,
      int64_t stage,
      const stats::Moments& moments,
      const std::map<std::string, Future>& found) const;
  // Null: the loss does not reach it.
  const stats::PairMoments* find_gradients(const std::string& space, int64_t stage) const;
  // What they leave open is as `otherwise` says, the map by activations; null: there is none.
  maps::Map solve_by_gradients(
      const std::string& space,
      int64_t stage,
      const stats::PairMoments& gradients,
      const maps::Map* otherwise) const;
  // W and b (or undefined) of rows `part` of a layer, as they are stored.
  std::pair<at::Tensor, at::Tensor> layer_of(
      const model::Model& model,
      const model::Linear& layer,
      size_t part,
      const stats::SourceBlock* block,
      c10::Device device) const;
  // What rows `part` of a layer write for these inputs [M, in], float64; without b when centred.
  at::Tensor rows_behind(
      const at::Tensor& rows,
      const model::Model& model,
      const model::Linear& layer,
      size_t part,
      const stats::SourceBlock* block) const;
  // [W, b] of rows `part` of a layer in float64, or W alone when moments are centred.
  at::Tensor affine(
      const model::Model& model,
      const model::Linear& layer,
      size_t part,
      const stats::SourceBlock* block,
      c10::Device device) const;

  const model::Model& source_;
  const model::Model& target_;
  stats::Route route_;
  const maps::Method& method_;
  maps::Options options_;
  SpaceSet seen_;  // spaces whose rows a walk sees
  stats::Moments outer_;
  std::map<int64_t, stats::Moments> gradients_;
};

}  // namespace theseus::transport
