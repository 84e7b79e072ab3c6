// Outputs of linear layers need no statistics of their own: what the solver derives from those of
// their inputs is what observing them would give.

#include "theseus/transport/solve.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/maps/problem.h"
#include "theseus/model/golden.h"
#include "theseus/transport/compatible.h"
#include "theseus/transport/depth.h"
#include "theseus/transport/plan.h"

#include "tests/support/cases.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::transport {
namespace {

using tests::Planting;

// A pass whose linear layers' outputs are kept.
struct Observed {
  std::map<std::string, at::Tensor> taps;
  std::map<std::string, at::Tensor> kept;

  Observed(model::Model& model, const model::Batch& batch) {
    model::RecordingTaps recording;
    auto pass = model.begin(batch, &recording);
    model.run(pass);
    taps = recording.tensors();
    kept = pass.kept;
  }

  stats::Sequences sequences(const model::Tower& tower, const at::Tensor& rows) const {
    const auto found = kept.find(tower.name);
    return {
        .rows = rows,
        .kept = found == kept.end() ? at::Tensor() : found->second,
        .grid = tower.image > 0 ? tower.image / tower.patch : 0};
  }
};

class SolveFixture {
 public:
  SolveFixture(
      const tests::Planted& planted, const std::string& match, bool centred, bool kept = false)
      : source_(model::Model::open(planted.source)),
        target_(model::Model::open(planted.target)),
        matchers_(matchers_of(target_.architecture(), match)),
        options_{.center = centred},
        kept_(kept) {
    route_ = make_route(source_.architecture(), target_.architecture(), Depth::kDivided, {});
    batch_ = tests::planted_calibration(source_, 6, 3);
  }

  // Returns how many spaces were derived.
  int64_t check() {
    Solver solver(source_, target_, route_, maps::method("linear"), options_);
    SpaceSet needed;
    for (const auto& [space, about] : target_.architecture().spaces) {
      needed.insert(space);
    }
    const auto observed = solver.observed_for(needed);
    stats::Walk walk(
        source_, target_, route_,
        {.matchers = matchers_,
         .grams = {.source = true, .target = true},
         .observed = observed,
         .kept = kept_ ? observed : SpaceSet()});
    stats::WalkState state;
    std::map<int64_t, stats::Moments> moments;
    walk.run(0, walk.stages(), {batch_, batch_}, state, moments);
    const Observed source(source_, batch_), target(target_, batch_);
    int64_t derived = 0;
    for (int64_t stage = 1; stage < walk.stages(); ++stage) {
      const bool outer = stage + 1 == walk.stages();
      for (const auto& [space, pair] : moments[stage]) {
        if (model::role_of(space) == space) {
          solver.outer()[space] = pair;
        }
      }
      const auto block = outer ? model::kOuter : stage - 1;
      for (const auto& [space, expected] : outputs_of(block, source, target)) {
        if (!observed.contains(space)) {
          expect_same(solver.problem(space, stage, moments[stage]), expected, space);
          ++derived;
        }
      }
    }
    return derived;
  }

 private:
  using Sums = std::map<std::string, stats::PairMoments>;

  // By space, what the layers of a block write. Each layer's rows are centred by themselves.
  Sums outputs_of(int64_t block, const Observed& source, const Observed& target) const {
    Sums sums;
    const auto& from = source_.architecture();
    const auto& to = target_.architecture();
    for (size_t l = 0; l < to.linears.size(); ++l) {
      const auto& layer = to.linears[l];
      const auto tap = "out/" + layer.module;
      if (layer.block != block || !target.taps.contains(tap)) {
        continue;
      }
      int64_t source_row = 0;
      int64_t target_row = 0;
      for (const auto& space : layer.out) {
        if (model::is_fixed(space)) {
          continue;
        }
        const auto ds = from.spaces.at(space).width, dt = to.spaces.at(space).width;
        const auto paired = pair_rows(
            layer.in, {source, source.taps.at(tap).narrow(-1, source_row, ds)},
            {target, target.taps.at(tap).narrow(-1, target_row, dt)});
        stats::PairMoments moments;
        moments.add(paired.source, paired.target, {.source = true, .target = true});
        if (options_.center) {
          moments = moments.centred();
          --moments.rows;  // a direction goes with the mean
        }
        const auto [found, first] = sums.try_emplace(space, moments);
        if (!first) {  // several layers write it
          auto& sum = found->second;
          sum.rows += moments.rows;
          sum.distinct += moments.distinct;
          sum.source_sum = sum.source_sum + moments.source_sum;
          sum.target_sum = sum.target_sum + moments.target_sum;
          sum.cross = sum.cross + moments.cross;
          sum.source_gram = sum.source_gram + moments.source_gram;
          sum.target_gram = sum.target_gram + moments.target_gram;
        }
        source_row += ds;
        target_row += dt;
      }
    }
    return sums;
  }

  stats::PairedRows pair_rows(
      const std::string& in,
      const std::pair<const Observed&, at::Tensor>& source,
      const std::pair<const Observed&, at::Tensor>& target) const {
    if (target.second.dim() == 2) {
      return {source.second, target.second};
    }
    const auto word = in.substr(0, in.find('.'));
    const auto tower = [&](const model::Architecture& architecture) {
      for (const auto& candidate : architecture.towers) {
        if (candidate.name == word) {
          return candidate;
        }
      }
      throw InternalError("no tower " + word);
    };
    return matchers_.at(word)->match(
        source.first.sequences(tower(source_.architecture()), source.second),
        target.first.sequences(tower(target_.architecture()), target.second));
  }

  static void expect_same(
      const maps::Problem& found, const stats::PairMoments& expected, const std::string& space) {
    ASSERT_TRUE(found.cross.defined()) << space;
    EXPECT_LE(found.rows, expected.rows) << space;  // fewer where a norm leaves fewer directions
    const auto expanded = [](const at::Tensor& left, const at::Tensor& core,
                             const at::Tensor& right) {
      const auto half = left.defined() ? left.matmul(core) : core;
      return right.defined() ? half.matmul(right.t()) : half;
    };
    if (expected.cross.norm().item<double>() <= found.floor) {  // rows that are all the same
      EXPECT_LE(found.cross.norm().item<double>(), found.floor) << space;
      return;
    }
    const auto& [s, t] = std::pair(found.source_basis, found.target_basis);
    // Outputs in float32 against float64.
    EXPECT_LT(tests::frobenius_error(expanded(s, found.cross, t), expected.cross), 1e-5) << space;
    EXPECT_LT(tests::frobenius_error(expanded(s, found.source_gram, s), expected.source_gram), 1e-5)
        << space;
    if (found.target_gram.defined()) {  // rows are multiplied only as the method needs it
      EXPECT_LT(
          tests::frobenius_error(expanded(t, found.target_gram, t), expected.target_gram), 1e-5)
          << space;
    }
  }

  model::Model source_, target_;
  std::map<std::string, const stats::Matcher*> matchers_;
  stats::Route route_;
  model::Batch batch_;
  maps::Options options_;
  bool kept_;  // rows instead of moments
};

TEST(Solver, DerivesTheMomentsOfOutputs) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : tests::planted_cases()) {
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, Planting::kWidened, scratch.path());
    const auto towers = model::Model::open(planted.source).architecture().towers;
    for (const auto& [match, plugin] : stats::all_matchers()) {
      if ((plugin->images_only && towers[0].image == 0) || plugin->needs_spans) {
        continue;
      }
      for (const auto& [centred, kept] :
           {std::pair(false, false), std::pair(true, false), std::pair(false, true),
            std::pair(true, true)}) {
        SCOPED_TRACE(c10::str(name, ", ", match, centred ? ", centred" : "", kept ? ", rows" : ""));
        SolveFixture fixture(planted, std::string(match), centred, kept);
        // q, k, v, attention's and the MLP's outputs, and its first layer.
        EXPECT_GE(fixture.check(), 6 * towers[0].blocks);
      }
    }
  }
}

TEST(Solver, ObservesOnlyInputs) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", Planting::kWidened, scratch.path());
  const auto source = model::Model::open(planted.source);
  const auto target = model::Model::open(planted.target);
  const auto route = make_route(source.architecture(), target.architecture(), Depth::kDivided, {});
  const Solver solver(source, target, route, maps::method("procrustes"), {});
  EXPECT_EQ(solver.observed_for({"visual.0.q"}), (SpaceSet{"visual.0.attn_in"}));
  EXPECT_EQ(
      solver.observed_for({"visual.1.mlp_up"}), (SpaceSet{"visual.1.mlp_in", "visual.1.mlp_mid"}));
  EXPECT_EQ(solver.observed_for({"visual.1.mlp_out"}), (SpaceSet{"visual.1.mlp_mid"}));
  const Solver weights(source, target, route, maps::method("data-free"), {});
  EXPECT_TRUE(weights.observed_for({"visual.0.q"}).empty());
}

// Which map stands for what is added to the residual stream.
TEST(Solver, KnowsTheStream) {
  const std::tuple<const char*, SpaceSet, SpaceSet> cases[] = {
      {"vit",
       {"visual.0.attn_out", "visual.1.mlp_out", "visual.1.q"},
       {"visual.0.mlp_in_raw", "visual.1.mlp_in_raw", "visual.1.q"}},
      {"t5",
       {"decoder.0.attn_out", "decoder.0.cross_out", "encoder.1.mlp_out"},
       {"decoder.0.mlp_in_raw", "encoder.1.mlp_in_raw"}},
      // Norms behind the sums; what such a norm writes is no sum.
      {"bert",
       {"encoder.0.attn_out", "encoder.0.mlp_out", "encoder.0.block_out"},
       {"encoder.0.mlp_in_raw", "encoder.0.block_out_raw", "encoder.0.block_out"}}};
  for (const auto& [name, needed, solved] : cases) {
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, Planting::kWidened, scratch.path());
    const auto source = model::Model::open(planted.source);
    const auto target = model::Model::open(planted.target);
    const auto route =
        make_route(source.architecture(), target.architecture(), Depth::kDivided, {});
    maps::Options options;
    EXPECT_EQ(
        Solver(source, target, route, maps::method("procrustes"), options).solved_for(needed),
        needed);
    options.stream = true;
    const Solver solver(source, target, route, maps::method("procrustes"), options);
    EXPECT_EQ(solver.solved_for(needed), solved) << name;
    for (const auto& space : solved) {
      EXPECT_TRUE(target.architecture().spaces.contains(space)) << space;
    }
  }
}

}  // namespace
}  // namespace theseus::transport
