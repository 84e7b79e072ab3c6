#include "theseus/transport/similarity.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/transport/compatible.h"

#include "tests/support/deepen.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/together.h"

namespace theseus::transport {
namespace {

at::Tensor similarity_of(
    const std::filesystem::path& from,
    const std::filesystem::path& to,
    const std::filesystem::path& calibration,
    int64_t batch_size,
    const cluster::Processes& processes = cluster::alone(),
    const model::Placement& placement = {}) {
  auto source = model::Model::open(from, {.placement = placement});
  auto target = model::Model::open(to, {.placement = placement});
  const auto inputs = stats::Calibration::open(
      calibration, source.architecture(), target.architecture(), {.batch_size = batch_size});
  int64_t calls = 0, last = -1;
  const auto result = block_similarity(
      source, target, inputs, matchers_of(target.architecture(), ""),
      [&](int64_t done, int64_t all) {
        EXPECT_EQ(done, ++calls);
        EXPECT_LE(done, all);
        last = all;
      },
      processes);
  EXPECT_EQ(calls, last);
  return result;
}

TEST(Similarity, IsOneForCopiesOfABlockWhateverTheWidth) {
  const c10::NoGradGuard no_gradients;
  for (const auto* name : {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch.path());
    tests::deepen(planted.target, scratch / "deep", 5);
    const auto options = tests::planted_job(planted, scratch.path(), 24);
    const auto found = similarity_of(planted.source, scratch / "deep", options.calibration, 24);
    EXPECT_GE(found.min().item<double>(), 0);
    EXPECT_LE(found.max().item<double>(), 1 + 1e-9);
    const auto towers = model::Model::open(planted.source).architecture().towers;
    int64_t source_block = 0;
    int64_t target_block = 0;
    for (const auto& tower : towers) {
      for (int64_t i = 0; i < tower.blocks; ++i) {
        // T5's decoder reads an encoder that is another one.
        if (tower.name != "decoder") {
          // Float32 activations.
          EXPECT_NEAR(found[source_block + i][target_block + i].item<double>(), 1, 1e-5)
              << tower.name << " " << i;
        }
        EXPECT_LT(found[source_block + i][target_block + 4].item<double>(), 0.999) << tower.name;
      }
      source_block += tower.blocks;
      target_block += 5;
    }
    const auto split = similarity_of(planted.source, scratch / "deep", options.calibration, 5);
    EXPECT_LT((split - found).abs().max().item<double>(), 1e-6);
  }
}

TEST(Similarity, IsTheSameInSeveralProcesses) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("clip", tests::Planting::kWidened, scratch.path());
  tests::deepen(planted.target, scratch / "deep", 5);
  const auto options = tests::planted_job(planted, scratch.path(), 24);
  const auto find = [&](const cluster::Processes& processes) {
    const c10::NoGradGuard no_gradients;
    return similarity_of(planted.source, scratch / "deep", options.calibration, 12, processes);
  };
  const auto whole = find(cluster::alone());
  for (const int size : {2, 4}) {  // of four some have no batch
    const auto errors = tests::run_together(size, [&](const cluster::Processes& processes) {
      // Float64 sums about another mean.
      EXPECT_LT((find(processes) - whole).abs().max().item<double>(), 1e-12);
    });
    for (const auto& error : errors) {
      EXPECT_EQ(error, nullptr);
    }
  }
}

TEST(Similarity, IsZeroBetweenTowersAndWhereTheCalibrationDoesNotReach) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("openclip", tests::Planting::kPermuted, scratch.path());
  tests::deepen(planted.target, scratch / "deep", 4);
  auto inputs = tests::planted_calibration(model::Model::open(planted.source), 8, 1);
  inputs.erase("text");
  tests::write_inputs(scratch / "images.safetensors", inputs);
  const auto found =
      similarity_of(planted.source, scratch / "deep", scratch / "images.safetensors", 8);
  EXPECT_GT(found.narrow(0, 0, 2).narrow(1, 0, 4).min().item<double>(), 0);
  EXPECT_EQ(found.narrow(0, 2, 2).abs().max().item<double>(), 0);
  EXPECT_EQ(found.narrow(1, 4, 4).abs().max().item<double>(), 0);
}

TEST(Similarity, OfModelsThatRunInBfloat16) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", tests::Planting::kWidened, scratch.path());
  // So deep that the streams go through sketches, narrow as they are.
  tests::deepen(planted.target, scratch / "deep", 300);
  const auto options = tests::planted_job(planted, scratch.path(), 4);
  const auto find = [&](const model::Placement& placement) {
    return similarity_of(
        planted.source, scratch / "deep", options.calibration, 4, cluster::alone(), placement);
  };
  const auto off = (find({.dtype = at::kBFloat16}) - find({})).abs().max().item<double>();
  EXPECT_GT(off, 0);
  EXPECT_LT(off, 0.05);
}

}  // namespace
}  // namespace theseus::transport
