// Jobs between models of different depth.

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/model/model.h"
#include "theseus/output/job.h"
#include "theseus/transport/alignment.h"
#include "theseus/transport/source_update.h"

#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::BlockParts;
using tests::Changes;
using tests::Planting;
using transport::Depth;

constexpr const char* kFamilies[] = {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"};
constexpr int64_t kBlocks = 5;

using Tensors = std::map<std::string, at::Tensor>;

// The paper's stretched source: after each block new ones between it and the next, after the last
// copies of it, `extra` in all and as evenly as can be.
BlockParts stretched(const model::Tower& tower, int64_t i) {
  const auto extra = kBlocks - tower.blocks;
  for (int64_t block = 0, at = 0; block < tower.blocks; ++block) {
    const auto count = (block + 1) * extra / tower.blocks - block * extra / tower.blocks;
    if (i <= at + count) {
      const auto share = static_cast<double>(i - at) / static_cast<double>(count + 1);
      const bool between = i > at && block + 1 < tower.blocks;
      return between ? BlockParts{{block, 1 - share}, {block + 1, share}}
                     : BlockParts{{block, 1.0}};
    }
    at += count + 1;
  }
  return {};
}

TEST(DepthJob, InterpolatesLikeAStretchedSource) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    tests::deepen(planted.target, scratch / "deep", kBlocks);
    auto options = tests::planted_job(planted, scratch.path(), 64);
    options.target = scratch / "deep";
    options.align.depth = Depth::kStretch;
    const auto record = tests::run(options);
    EXPECT_EQ(record.at("depth").at("mode"), "stretch");
    const auto found = tests::update_of(options.out);

    tests::restack(planted.source, scratch / "long", kBlocks, stretched);
    tests::restack(planted.tuned, scratch / "long_tuned", kBlocks, stretched);
    options.source = scratch / "long";
    options.tuned = scratch / "long_tuned";
    options.out = scratch / "by_hand";
    EXPECT_EQ(tests::run(options).at("depth").at("mode"), "block by block");
    const auto expected = tests::update_of(options.out);
    EXPECT_EQ(found.size(), expected.size());
    for (const auto& [tensor, delta] : expected) {
      ASSERT_TRUE(found.contains(tensor)) << tensor;
      // A mean of differences is the difference of the means to float32's rounding of values twenty
      // times as large.
      EXPECT_LT(tests::frobenius_error(found.at(tensor), delta), 1e-5) << tensor;
    }
  }
}

// The sum over a target block's pairs of share * T_out^T delta T_in, with the maps of an alignment.
Tensors by_hand(const JobOptions& options, const fs::path& alignment_path) {
  const auto alignment = transport::Alignment::open(alignment_path);
  const auto source = model::Model::open(options.source);
  const auto target = model::Model::open(options.target);
  const auto update = transport::SourceUpdate::open(options.tuned, source);
  const auto& route = alignment.route();
  Tensors result;
  for (size_t p = 0; p < route.pairs.size(); ++p) {
    const auto& pair = route.pairs[p];
    const auto maps = alignment.maps(static_cast<int64_t>(p) + 1);
    for (const auto& parameter : target.architecture().parameters) {
      const bool mapped =
          std::none_of(parameter.axes.begin(), parameter.axes.end(), model::is_fixed);
      if (parameter.block != pair.target || !mapped || parameter.role == model::Role::kGain) {
        continue;
      }
      const auto role = target.architecture().role(parameter.name, parameter.block);
      const auto block = route.source[static_cast<size_t>(pair.source)].run_as;
      auto delta = update.find_delta(*source.architecture().find_parameter(role, block));
      if (!delta.defined()) {
        continue;
      }
      delta = delta.to(at::kDouble) * pair.share;
      for (int64_t axis = 0; axis < delta.dim(); ++axis) {
        const auto& map = maps.at(parameter.axes[static_cast<size_t>(axis)]).matrix;
        delta = at::tensordot(delta, map.to(at::kDouble), {axis}, {0}).movedim(-1, axis);
      }
      auto& sum = result[parameter.name];
      sum = sum.defined() ? sum + delta : delta;
    }
  }
  return result;
}

void expect_matched(JobOptions options, const fs::path& scratch) {
  const auto record = tests::run(options);
  const auto& depth = record.at("depth");
  EXPECT_EQ(depth.at("mode"), "divided");
  EXPECT_FALSE(depth.at("similarity").empty());
  const auto found = tests::update_of(options.out);
  options.out = scratch / "alignment";
  const auto tuned = std::exchange(options.tuned, {});
  align_job(options, [](double, double, const std::string&) {});
  options.tuned = tuned;
  const auto expected = by_hand(options, scratch / "alignment");
  const auto target = model::Model::open(options.target);
  for (const auto& parameter : target.architecture().parameters) {
    if (expected.contains(parameter.name)) {
      // Products in float32 against float64.
      EXPECT_LT(
          tests::frobenius_error(tests::part_of(found, parameter), expected.at(parameter.name)),
          1e-5)
          << parameter.name;
    }
  }
  EXPECT_GE(expected.size(), 6U * static_cast<size_t>(target.architecture().blocks()));
}

TEST(DepthJob, MatchesDeeperTargets) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    tests::deepen(planted.target, scratch / "deep", kBlocks);
    auto options = tests::planted_job(planted, scratch.path(), 64);
    options.target = scratch / "deep";
    expect_matched(options, scratch.path());
  }
}

TEST(DepthJob, MatchesShallowerTargets) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : kFamilies) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    auto options = tests::planted_job(planted, scratch.path(), 64);
    tests::deepen(planted.target, scratch / "deep", kBlocks);
    tests::deepen(planted.expected, scratch / "deep_tuned", kBlocks);
    options.source = scratch / "deep";
    options.tuned = scratch / "deep_tuned";
    options.target = planted.source;
    expect_matched(options, scratch.path());
    options.align.depth = Depth::kStretch;
    options.out = scratch / "refused";
    tests::expect_parts(
        tests::error_of([&] { tests::run(options); }), "at least as deep", "--depth divided");
  }
}

}  // namespace
}  // namespace theseus::output
