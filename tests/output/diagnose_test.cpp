// A diagnosis of pairs whose answer is known.

#include "theseus/output/diagnose.h"

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"
#include "theseus/output/verdict.h"

#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using tests::Planting;

ordered_json diagnose(const JobOptions& options) {
  const c10::NoGradGuard no_gradients;
  return diagnose_job(options, [](double, double, const std::string&) {});
}

JobOptions job_of(const tests::ScratchDir& scratch, Planting planting, int64_t sequences = 256) {
  auto options = tests::planted_job(
      tests::plant("timm_vit", planting, scratch.path()), scratch.path(), sequences);
  options.out.clear();
  return options;
}

// The model with every matrix drawn anew, each with its own deviation.
void randomise(const fs::path& model) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  at::manual_seed(3);
  for (const auto& [name, tensor] : tests::read_tensors(model)) {
    const auto drawn = tensor.dim() > 1 ? at::randn_like(tensor) * tensor.std() : tensor.clone();
    tensors.emplace_back(name, drawn);
  }
  checkpoint::write_safetensors(model / "model.safetensors", tensors);
}

double least(const ordered_json& record, const char* key) {
  double value = 1e9;
  for (const auto& space : record.at("spaces")) {
    value = std::min(value, space.at(key).get<double>());
  }
  return value;
}

TEST(Diagnose, APlantedPairWorks) {
  const tests::ScratchDir scratch;
  const auto record = diagnose(job_of(scratch, Planting::kWidened));
  EXPECT_EQ(record.at("kind"), "diagnose");
  EXPECT_EQ(record.at("verdict"), "works") << record.dump(1);
  EXPECT_GT(least(record, "after"), 0.9999);
  EXPECT_GT(least(record, "centred"), 0.9999);
  EXPECT_LT(least(record, "before"), 0.5);
  EXPECT_EQ(record.at("aligned"), 192);
  EXPECT_EQ(record.at("held_out"), 64);
  for (const auto& space : record.at("spaces")) {
    EXPECT_LE(space.at("rank"), space.at("possible"));
    EXPECT_LE(space.at("possible"), space.at("of"));
    EXPECT_GT(space.at("energy"), 0);
    EXPECT_LE(space.at("energy").get<double>(), 1 + 1e-9);
  }
}

TEST(Diagnose, TheSameModelIsCopied) {
  const tests::ScratchDir scratch;
  auto options = job_of(scratch, Planting::kPermuted);
  const auto permuted = diagnose(options);
  EXPECT_EQ(permuted.at("verdict"), "works") << permuted.dump(1);
  EXPECT_GT(permuted.at("distance").at("relative"), 0.5);
  options.target = options.source;
  const auto record = diagnose(options);
  EXPECT_EQ(record.at("verdict"), "just copy");
  EXPECT_EQ(record.at("distance").at("relative"), 0);
  EXPECT_EQ(record.at("distance").at("equal_bytes"), 1);
  EXPECT_EQ(record.at("distance").at("compared"), record.at("distance").at("of"));
  EXPECT_GT(least(record, "before"), 0.9999);
}

TEST(Diagnose, ARandomTargetDoesNotWork) {
  const tests::ScratchDir scratch;
  const auto options = job_of(scratch, Planting::kWidened);
  randomise(options.target);
  const auto record = diagnose(options);
  EXPECT_NE(record.at("verdict"), "works") << record.dump(1);
  EXPECT_LT(least(record, "centred"), 0.6);
  EXPECT_FALSE(record.at("reasons").empty());
}

// Batches are a matter of memory: the same sequences held out give the same numbers.
TEST(Diagnose, DoesNotDependOnBatches) {
  const tests::ScratchDir scratch;
  auto options = job_of(scratch, Planting::kWidened, 64);
  randomise(options.target);
  options.align.sampling.batch_size = 16;
  const auto few = diagnose(options);
  options.align.sampling.batch_size = 8;
  const auto many = diagnose(options);
  options.align.sampling.batch_size = 64;  // one batch: its sequences are split
  const auto one = diagnose(options);
  ASSERT_EQ(few.at("spaces").size(), many.at("spaces").size());
  ASSERT_EQ(few.at("spaces").size(), one.at("spaces").size());
  for (size_t i = 0; i < few.at("spaces").size(); ++i) {
    for (const char* key : {"before", "after", "centred"}) {
      const auto expected = few.at("spaces")[i].at(key).get<double>();
      EXPECT_NEAR(many.at("spaces")[i].at(key).get<double>(), expected, 1e-4) << i << key;
      EXPECT_NEAR(one.at("spaces")[i].at(key).get<double>(), expected, 1e-4) << i << key;
    }
  }
  EXPECT_EQ(one.at("held_out"), 16);
}

// What is remembered is not known: with few rows the map fits those it saw, and no others.
TEST(Diagnose, SeesThatRowsAreTooFew) {
  const tests::ScratchDir scratch;
  auto options = job_of(scratch, Planting::kWidened, 2);
  const auto record = diagnose(options);
  EXPECT_LT(least(record, "energy"), 0.9);
  EXPECT_EQ(record.at("aligned"), 1);
}

// The shares that were measured on settings of which it is known whether they work (docs/diagnose.md).
TEST(Diagnose, AgreementDecidesWhereItCan) {
  const auto spaces =
      ordered_json::parse(R"([{"space": "visual.0.attn_in", "stage": 1, "before": 0.5,
      "after": 0.9, "centred": 0.6, "rank": 8, "of": 8, "possible": 8, "energy": 1.0}])");
  const auto word = [&](double before, double after, int64_t rows) {
    return judge(spaces, {}, Agreement{before, after, rows}).word;
  };
  EXPECT_EQ(judge(spaces, {}).word, "may work");  // by the cosine
  EXPECT_EQ(word(0.17, 0.73, 80), "works");
  EXPECT_EQ(word(0.13, 0.49, 80), "works");
  EXPECT_EQ(word(0.32, 0.39, 320), "may work");
  EXPECT_EQ(word(0.12, 0.09, 80), "will not work");
  // Too few rows, or too little to win: the cosine decides again.
  auto close = spaces;
  close[0]["centred"] = 0.95;
  const auto fallen_back = [&](double before, double after, int64_t rows) {
    return judge(close, {}, Agreement{before, after, rows}).word;
  };
  EXPECT_EQ(fallen_back(0.25, 0.25, 4), "works");
  EXPECT_EQ(fallen_back(0.97, 0.97, 1000), "works");
  EXPECT_EQ(fallen_back(0.25, 0.25, 400), "will not work");
  const Agreement half{.before = 0.2, .after = 0.6, .rows = 100};
  EXPECT_DOUBLE_EQ(half.gain(), 0.5);
  // As of 21 and 61 in 102.
  EXPECT_NEAR(half.error(), 2 * std::sqrt((21.0 * 81 + 61 * 41) / (102 * 102) / 100) / 0.8, 1e-12);
  const Agreement one{.before = 0, .after = 1, .rows = 1};
  EXPECT_GT(one.error(), 1);
  EXPECT_EQ(word(0, 1, 1), "may work");  // by the cosine, not by a single row
}

TEST(Diagnose, Refuses) {
  const tests::ScratchDir scratch;
  auto options = job_of(scratch, Planting::kWidened, 1);
  tests::expect_parts(tests::error_of([&] { diagnose(options); }), "one sequence", "held out");
  options.calibration.clear();
  tests::expect_parts(tests::error_of([&] { diagnose(options); }), "needs --examples");
}

}  // namespace
}  // namespace theseus::output
