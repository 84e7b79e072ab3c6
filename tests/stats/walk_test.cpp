// Groups of stages, block by block or all at once, give the same moments bit for bit.

#include "theseus/stats/walk.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/transport/compatible.h"
#include "theseus/transport/depth.h"

#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::stats {
namespace {

namespace fs = std::filesystem;
constexpr const char* kFamilies[] = {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"};

using Groups = std::vector<std::pair<int64_t, int64_t>>;

class Fixture {
 public:
  Fixture(const fs::path& source, const fs::path& target, transport::Depth depth)
      : source_(model::Model::open(source)), target_(model::Model::open(target)) {
    const auto& from = source_.architecture();
    const auto& to = target_.architecture();
    const auto similarity = at::linspace(1, 0, from.blocks() * to.blocks(), at::kDouble);
    route_ = transport::make_route(
        from, to, depth, similarity.view({from.blocks(), to.blocks()}).contiguous());
    batch_ = tests::planted_calibration(source_, 5, 3);
    collect_.matchers = transport::matchers_of(to, "");
    collect_.grams = {.source = true, .target = true};
    for (const auto& norm : to.norms) {
      collect_.observed.insert({norm.in, norm.out});
    }
    for (const auto& layer : to.linears) {
      collect_.observed.insert(layer.in);
    }
    std::erase_if(collect_.observed, [&](const auto& space) { return !to.spaces.contains(space); });
  }

  int64_t stages() { return Walk(source_, target_, route_, collect_).stages(); }
  const Route& route() const { return route_; }
  const std::set<std::string>& observed() const { return collect_.observed; }
  model::Model& target() { return target_; }
  const model::Batch& batch() const { return batch_; }

  std::map<int64_t, Moments> run(const Groups& groups) {
    Walk walk(source_, target_, route_, collect_);
    std::map<int64_t, Moments> moments;
    WalkState state;
    for (const auto& [first, last] : groups) {
      walk.run(first, last, {batch_, batch_}, state, moments);
      walk.drop(first, last);
    }
    return moments;
  }

 private:
  model::Model source_, target_;
  Route route_;
  model::Batch batch_;
  Collect collect_;
};

void expect_equal(
    const std::map<int64_t, Moments>& found, const std::map<int64_t, Moments>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [stage, moments] : expected) {
    ASSERT_EQ(found.at(stage).size(), moments.size()) << "stage " << stage;
    for (const auto& [space, pair] : moments) {
      const auto& other = found.at(stage).at(space);
      EXPECT_EQ(other.rows, pair.rows) << space;
      EXPECT_TRUE(at::equal(other.cross, pair.cross)) << space;
      EXPECT_TRUE(at::equal(other.source_sum, pair.source_sum)) << space;
      EXPECT_TRUE(at::equal(other.target_gram, pair.target_gram)) << space;
    }
  }
}

Groups one_by_one(int64_t stages) {
  Groups groups;
  for (int64_t stage = 0; stage < stages; ++stage) {
    groups.emplace_back(stage, stage + 1);
  }
  return groups;
}

Groups by_threes(int64_t stages) {
  Groups groups;
  for (int64_t stage = 0; stage < stages; stage += 3) {
    groups.emplace_back(stage, std::min(stage + 3, stages));
  }
  return groups;
}

void expect_groups_do_not_matter(Fixture& fixture) {
  const auto stages = fixture.stages();
  const auto whole = fixture.run({{0, stages}});
  expect_equal(fixture.run(one_by_one(stages)), whole);
  expect_equal(fixture.run(by_threes(stages)), whole);
}

TEST(Walk, GivesTheSameMomentsInAnyGroups) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
    Fixture fixture(planted.source, planted.target, transport::Depth::kDivided);
    expect_groups_do_not_matter(fixture);
  }
}

TEST(Walk, GivesTheSameMomentsInAnyGroupsWhereDepthsDiffer) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
    tests::deepen(planted.target, scratch / "deep", 5);
    for (const auto depth : {transport::Depth::kDivided, transport::Depth::kStretch}) {
      Fixture deeper(planted.source, scratch / "deep", depth);
      expect_groups_do_not_matter(deeper);
    }
    Fixture shallower(scratch / "deep", planted.source, transport::Depth::kDivided);
    expect_groups_do_not_matter(shallower);
  }
}

// Every space in the stage of its block; of copies, so that the cross moment is a multiple of the
// target's Gram in the planted map.
TEST(Walk, PairsTheRowsOfEverySpace) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
    Fixture fixture(planted.source, planted.target, transport::Depth::kDivided);
    std::set<std::string> seen;
    for (const auto& [stage, moments] : fixture.run({{0, fixture.stages()}})) {
      for (const auto& [space, pair] : moments) {
        EXPECT_TRUE(seen.insert(space).second) << space << " comes twice";
        const auto planted_map = planted.maps.find(space);
        ASSERT_NE(planted_map, planted.maps.end()) << space;
        // S T = R up to a factor c, so C T^T... T (S^T R) is symmetric: T^T C = c R^T R / |c|^2.
        const auto image = planted_map->second.t().matmul(pair.cross);
        const auto factor = (image * pair.target_gram).sum() / pair.target_gram.square().sum();
        // Float32 activations of two models.
        EXPECT_LT(tests::frobenius_error(image, pair.target_gram * factor), 1e-5) << space;
      }
    }
    EXPECT_EQ(seen, fixture.observed());
  }
}

// The stream after each block, run one at a time, is the stream of a whole pass.
TEST(Walk, LeavesTheStatesOfAWholePass) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
    Fixture fixture(planted.source, planted.target, transport::Depth::kDivided);
    auto source = model::Model::open(planted.source);
    auto& target = fixture.target();
    Walk walk(source, target, fixture.route(), {.matchers = {}, .grams = {}, .observed = {}});
    WalkState state;
    std::map<int64_t, Moments> moments;
    auto pass = target.begin(fixture.batch());
    target.network().enter(pass);
    for (int64_t stage = 0; stage + 1 < walk.stages(); ++stage) {
      walk.run(stage, stage + 1, {fixture.batch(), fixture.batch()}, state, moments);
      if (stage > 0) {
        target.run_block(stage - 1, pass);
      }
      ASSERT_EQ(state.target.size(), pass.streams.size());
      for (const auto& [stream, value] : pass.streams) {
        EXPECT_TRUE(at::equal(state.target.at(stream), value)) << stream << " " << stage;
      }
    }
  }
}

TEST(Walk, SaysWhichModelABatchDoesNotFit) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", tests::Planting::kPermuted, scratch.path());
  auto source = model::Model::open(planted.source);
  auto target = model::Model::open(planted.target);
  const auto route = transport::make_route(
      source.architecture(), target.architecture(), transport::Depth::kDivided, {});
  Walk walk(source, target, route, {.matchers = {}, .grams = {}, .observed = {}});
  WalkState state;
  std::map<int64_t, Moments> moments;
  const model::Batch good = tests::planted_calibration(source, 2, 1);
  const model::Batch bad = {{"pixel_values", at::zeros({2, 3, 5, 5})}};
  tests::expect_parts(
      tests::error_of([&] {
        walk.run(0, 1, {good, bad}, state, moments);
      }),
      "running", "target", "pixel_values");
}

TEST(Blended, IsTheMeanOfItsParts) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("timm_vit", tests::Planting::kPermuted, scratch.path());
  const auto model = model::Model::open(planted.source);
  const std::string name = "blocks.0.attn.qkv.weight";
  const auto value = [&](int64_t block) {
    for (const auto& parameter : model.architecture().parameters) {
      if (parameter.tensor == model::in_block(name, block)) {
        return model.checkpoint().tensor(parameter.stored);
      }
    }
    throw InternalError(name);
  };
  const auto mean = blended(model, {.run_as = 0, .parts = {{0, 0.25}, {1, 0.75}}}, name);
  const auto expected = value(0) * 0.25 + value(1) * 0.75;
  EXPECT_LT(tests::frobenius_error(mean, expected), 1e-7);
}

}  // namespace
}  // namespace theseus::stats
