// Planted truths through files: what transport_job makes of the target is what was planted, for every
// case of every family.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/base/device.h"
#include "theseus/model/golden.h"
#include "theseus/model/model.h"

#include "tests/support/cases.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

using tests::Changes;
using tests::Planted;
using tests::Planting;
using tests::PlantOptions;

std::string family_of(const std::string& name) {
  return name == "openclip" ? name : model::locate(tests::case_path(name)).family;
}

bool takes(const std::string& name, Planting planting) {
  const auto family = family_of(name);
  return tests::sees_all(name) &&
         (planting != Planting::kRotated || family == "llama" || family == "t5");
}

// Runs `check` on every case of every family that the planting is for.
template <class Check>
void each(Planting planting, const PlantOptions& options, const Check& check) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : tests::planted_cases()) {
    if (takes(name, planting)) {
      SCOPED_TRACE(name);
      const tests::ScratchDir scratch;
      check(tests::plant(name, planting, scratch.path(), options), scratch);
    }
  }
}

// Every part of `expected` is in scratch/out, and nothing else.
void expect_update(
    const std::filesystem::path& out,
    const std::filesystem::path& target,
    const std::map<std::string, at::Tensor>& expected,
    double tolerance) {
  const auto found = tests::update_of(out);
  for (const auto& [name, delta] : found) {
    EXPECT_TRUE(expected.contains(name)) << name << " is not in what was planted";
  }
  const auto model = model::Model::open(target);
  for (const auto& parameter : model.architecture().parameters) {
    if (!expected.contains(parameter.tensor)) {
      continue;
    }
    ASSERT_TRUE(found.contains(parameter.tensor)) << parameter.name << " was not carried";
    EXPECT_LT(
        tests::frobenius_error(
            tests::part_of(found, parameter), tests::part_of(expected, parameter)),
        tolerance)
        << parameter.name;
  }
}

// The carried model computes what the tuned source does.
void expect_same_function(
    const Planted& planted, const std::filesystem::path& out, double tolerance) {
  const auto carried = model::Model::open(out).forward(planted.inputs);
  for (const auto& [name, value] : model::Model::open(planted.tuned).forward(planted.inputs)) {
    EXPECT_LT(model::relative_error(carried.at(name), planted.as_target(name, value)), tolerance)
        << name;
  }
}

void expect_recovered(Planting planting, Changes changes, bool stream = false) {
  each(planting, {.changes = changes}, [&](const Planted& planted, const auto& scratch) {
    auto options = tests::planted_job(planted, scratch.path());
    options.align.maps.stream = stream;
    tests::run(options);
    // Deltas are differences of float32 numbers twenty times their size, maps come from float32
    // activations: 1e-6 each.
    expect_update(
        options.out, planted.target, tests::difference(planted.expected, planted.target), 1e-5);
    options.write = "model";
    options.out = scratch / "model";
    tests::run(options);
    expect_same_function(planted, options.out, 1e-4);
  });
}

TEST(PlantedJob, RecoversWhatWasPermuted) {
  expect_recovered(Planting::kPermuted, Changes::kAll);
}

TEST(PlantedJob, RecoversWhatWasWidened) {
  expect_recovered(Planting::kWidened, Changes::kWeights);
}

TEST(PlantedJob, RecoversWhatWasRotated) {
  expect_recovered(Planting::kRotated, Changes::kAll);
}

// What a data centre's GPU would compute, on the CPU.
TEST(PlantedJob, RecoversItWhereFloat64IsFast) {
  const PretendFastFloat64 fast;
  expect_recovered(Planting::kWidened, Changes::kWeights);
  expect_recovered(Planting::kRotated, Changes::kAll);
}

// The stream of a planted pair is carried over as what layers add to it.
TEST(PlantedJob, TheStreamsMapRecoversItToo) {
  expect_recovered(Planting::kWidened, Changes::kWeights, /*stream=*/true);
  expect_recovered(Planting::kRotated, Changes::kAll, /*stream=*/true);
}

}  // namespace
}  // namespace theseus::output
