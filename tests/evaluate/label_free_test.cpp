// Where the right strength is known: a planted update is carried exactly, so it has its full effect at 1.

#include "theseus/evaluate/label_free.h"

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::evaluate {
namespace {

namespace fs = std::filesystem;
using tests::Planting;

const Watch kQuiet = [](int64_t, int64_t, const std::string&) {};
constexpr const char* kImages = THESEUS_SOURCE_DIR "/tests/fixtures/evaluate/images.csv";
constexpr Strengths kStrengths = {.first = 0, .last = 3, .step = 0.25, .patience = 3};

struct Planted {
  tests::Planted models;
  SourceChange from;
  EvaluateOptions options;
};

// A pair of vision transformers that read pictures, and the maps between them.
Planted planted(Planting planting, const fs::path& scratch) {
  Planted result{.models = tests::plant("vit", planting, scratch)};
  for (const auto& model : {result.models.source, result.models.target}) {
    tests::write_bytes(
        model / "preprocessor_config.json",
        R"({"do_resize": true, "size": {"height": 24, "width": 24}, "resample": 2,
            "do_rescale": true, "rescale_factor": 0.00392156862745098, "do_normalize": true,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})");
  }
  auto job = tests::planted_job(result.models, scratch);
  job.tuned.clear();
  job.write.clear();
  job.out = scratch / "maps";
  output::align_job(job, [](double, double, const std::string&) {});
  result.from = {.alignment = job.out, .tuned = result.models.tuned};
  result.options.data = kImages;
  return result;
}

Update carried(const Planted& pair, const model::Model& target) {
  output::JobOptions job;
  job.tuned = pair.from.tuned;
  job.target = pair.models.target;
  job.alignment = pair.from.alignment;
  return carry_update(job, target);
}

TEST(LabelFree, FindsTheStrengthThatWasPlanted) {
  const c10::NoGradGuard no_gradients;
  for (const auto planting : {Planting::kPermuted, Planting::kWidened}) {
    const tests::ScratchDir scratch;
    const auto pair = planted(planting, scratch.path());
    auto target = model::Model::open(pair.models.target);
    auto update = carried(pair, target);
    const auto measured = [&] {
      return sweep_without_labels(target, update, pair.from, pair.options, kStrengths, kQuiet);
    };
    const auto record = measured();
    EXPECT_EQ(record.at("best").at("alpha"), 1.0);
    EXPECT_EQ(record.at("label_free").at("alpha"), 1.0);
    EXPECT_GT(record.at("best").at("value"), 0.999);
    EXPECT_GT(record.at("best").at("centred"), 0.999);
    EXPECT_TRUE(record.at("notes").empty());
    EXPECT_NEAR(record.at("curve").at(0).at("value").get<double>(), 0, 1e-12);
    EXPECT_EQ(record.at("curve").size(), 8U);  // 0 to 1.75: three without a gain
    EXPECT_EQ(record.at("best").at("count"), 40);
    // Which is why the cosine cannot choose: it is the same at half the strength.
    EXPECT_GT(record.at("curve").at(2).at("cosine"), 0.99);
    for (auto& [name, delta] : update) {
      delta = delta / 2;
    }
    EXPECT_EQ(measured().at("best").at("alpha"), 2.0);
  }
}

TEST(LabelFree, SeesAnUpdateThatDoesSomethingElse) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto pair = planted(Planting::kPermuted, scratch.path());
  auto target = model::Model::open(pair.models.target);
  auto update = carried(pair, target);
  at::manual_seed(3);
  for (auto& [name, delta] : update) {
    delta = at::randn_like(delta) * delta.norm() / std::sqrt(static_cast<double>(delta.numel()));
  }
  const auto record =
      sweep_without_labels(target, update, pair.from, pair.options, kStrengths, kQuiet);
  EXPECT_LT(record.at("best").at("value"), 0.2);
  EXPECT_LT(record.at("best").at("centred"), 0.2);
  EXPECT_LT(record.at("best").at("alpha"), 0.6);
}

TEST(LabelFree, RefusesWhatHasNoChange) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  auto pair = planted(Planting::kPermuted, scratch.path());
  auto target = model::Model::open(pair.models.target);
  const auto update = carried(pair, target);
  const auto message = [&] {
    return tests::error_of(
        [&] { sweep_without_labels(target, update, pair.from, pair.options, kStrengths, kQuiet); });
  };
  pair.from.tuned = pair.models.source;
  tests::expect_parts(message(), "no change to agree with");
  pair.from.tuned = pair.models.tuned;
  pair.from.source = scratch / "moved";
  tests::expect_parts(message(), "give --source if it has moved");
  pair.from.source.clear();
  pair.options.limit = 1;
  tests::expect_parts(message(), "one example");
}

}  // namespace
}  // namespace theseus::evaluate
