// Properties of whole jobs.

#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/model/model.h"
#include "theseus/output/job.h"

#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::Changes;
using tests::Planted;
using tests::Planting;

using Tensors = std::map<std::string, at::Tensor>;

void expect_close(const Tensors& found, const Tensors& expected, double tolerance) {
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_LT(tests::frobenius_error(found.at(name), value), tolerance) << name;
  }
}

void expect_equal(const Tensors& found, const Tensors& expected) {
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(at::equal(found.at(name), value)) << name;
  }
}

TEST(TransportJob, LeavesTheUpdateAsItIsOnTheSameModel) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : tests::planted_cases()) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kPermuted, scratch.path(), {.changes = Changes::kAll});
    auto options = tests::planted_job(planted, scratch.path());
    options.target = planted.source;
    tests::run(options);
    // The maps are identities, rounded to float32.
    expect_close(
        tests::update_of(options.out), tests::difference(planted.tuned, planted.source), 1e-6);
  }
}

TEST(TransportJob, NarrowingUndoesWidening) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : tests::planted_cases()) {
    if (!tests::sees_all(name)) {
      continue;
    }
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, Planting::kWidened, scratch.path());
    auto options = tests::planted_job(planted, scratch.path());
    options.source = planted.target;
    options.tuned = planted.expected;
    options.target = planted.source;
    tests::run(options);
    // Float32 differences and activations, as in planted_job_test.
    expect_close(
        tests::update_of(options.out), tests::difference(planted.tuned, planted.source), 1e-5);
  }
}

TEST(TransportJob, WideningKeepsNormsAndNarrowingNeverGrowsOne) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    // Models that know nothing of each other: their changes do not fit the maps.
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    const auto other = tests::plant(
        name, Planting::kWidened, scratch / "other", {.changes = Changes::kAll, .seed = 9});
    auto options = tests::planted_job(planted, scratch.path(), 32);
    options.target = other.target;
    options.norms = transport::Norms::kRotate;
    const auto up = tests::run(options);
    options.source = other.target;
    options.tuned = other.expected;
    options.target = planted.source;
    options.out = scratch / "down";
    const auto down = tests::run(options);
    int64_t rows = 0;
    for (const auto* record : {&up, &down}) {
      for (const auto& row : record->at("parameters")) {
        if (!row.contains("source_norm")) {
          continue;
        }
        const double before = row.at("source_norm"), after = row.at("target_norm");
        // Isometries to float32's rounding.
        EXPECT_LT(after, before * (1 + 1e-6)) << row;
        EXPECT_TRUE(record == &down || after > before * (1 - 1e-6)) << row;
        ++rows;
      }
    }
    EXPECT_GT(rows, 20);
  }
}

TEST(TransportJob, KeepsBfloat16ToItsRounding) {
  const c10::NoGradGuard no_gradients;
  for (const auto planting : {Planting::kPermuted, Planting::kWidened}) {
    for (const auto& name : {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"}) {
      SCOPED_TRACE(name);
      const tests::ScratchDir scratch;
      const auto planted = tests::plant(name, planting, scratch.path(), {.dtype = at::kBFloat16});
      auto options = tests::planted_job(planted, scratch.path());
      options.write = "model";
      const auto record = tests::run(options);
      EXPECT_LT(record.at("output_dtype").at("lost").get<double>(), 1e-4);
      const auto expected = tests::read_tensors(planted.expected);
      for (const auto& [tensor, value] : tests::read_tensors(options.out)) {
        ASSERT_EQ(value.scalar_type(), at::kBFloat16) << tensor;
        const auto right = expected.at(tensor).to(at::kDouble);
        // Less than rounding once more would do: 2^-9 / sqrt(3) = 1.1e-3.
        EXPECT_LT(tests::frobenius_error(value, right), 1e-3) << tensor;
      }
    }
  }
}

TEST(TransportJob, DoesNotDependOnBatchesOrTheirOrder) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"clip", "llama", "t5", "vit"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted = tests::plant(name, Planting::kWidened, scratch.path());
    auto options = tests::planted_job(planted, scratch.path());
    tests::run(options);
    const auto once = tests::update_of(options.out);
    options.align.sampling.batch_size = 7;
    options.out = scratch / "sevens";
    tests::run(options);
    expect_close(tests::update_of(options.out), once, 1e-5);  // activations differ by rounding
    auto inputs = tests::read_tensors(options.calibration);
    for (auto& [input, value] : inputs) {
      value = value.flip(0);
    }
    options.calibration = scratch / "backwards.safetensors";
    tests::write_inputs(options.calibration, inputs);
    options.out = scratch / "backwards";
    tests::run(options);
    expect_close(tests::update_of(options.out), once, 1e-5);
  }
}

TEST(TransportJob, WalksALargeBatchInParts) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", Planting::kWidened, scratch.path());
  auto options = tests::planted_job(planted, scratch.path(), 300);
  const auto update = [&](int64_t batch_size) {
    options.align.sampling.batch_size = batch_size;
    options.out = scratch / std::to_string(batch_size);
    tests::run(options);
    return tests::update_of(options.out);
  };
  const auto whole = update(300);  // of 17 tokens each, and 4096 rows are walked at most
  expect_close(update(150), whole, 1e-12);
  expect_close(update(100), whole, 1e-5);
}

TEST(TransportJob, GivesTheSameBytesAgain) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", Planting::kWidened, scratch.path());
  auto options = tests::planted_job(planted, scratch.path(), 32);
  for (const char* write : {"update", "model"}) {
    options.write = write;
    options.out = scratch / "first";
    options.fresh = true;
    tests::run(options);
    options.out = scratch / "second";
    tests::run(options);
    for (const auto& entry : fs::directory_iterator(scratch / "first")) {
      if (entry.path().extension() == ".safetensors") {  // the record says how long it took
        EXPECT_EQ(
            tests::read_bytes(entry.path()),
            tests::read_bytes(scratch / "second" / entry.path().filename()))
            << entry.path();
      }
    }
  }
}

// Throws from the n-th word about its progress.
struct Interrupted {};

TEST(TransportJob, GoesOnAfterAnyInterruption) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("t5", Planting::kWidened, scratch.path());
  tests::deepen(planted.target, scratch / "deep", 4);
  auto options = tests::planted_job(planted, scratch.path(), 12);
  options.target = scratch / "deep";
  options.align.sampling.batch_size = 4;
  tests::run(options);
  const auto expected = tests::update_of(options.out);
  options.out = scratch / "again";
  for (int64_t stop = 0, finished = 0; finished == 0; stop += 4) {
    int64_t calls = 0;
    try {
      transport_job(options, [&](double, double, const std::string&) {
        if (calls++ == stop) {
          throw Interrupted();
        }
      });
      finished = 1;
      EXPECT_GT(stop, 30);
    } catch (const Interrupted&) {
      EXPECT_FALSE(fs::exists(options.out)) << stop;
    }
  }
  expect_equal(tests::update_of(options.out), expected);
  EXPECT_FALSE(fs::exists(scratch / "again.partial"));
}

TEST(TransportJob, RefusesWhatDoesNotBelongTogether) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", Planting::kPermuted, scratch.path());
  const auto other = tests::plant("bert", Planting::kPermuted, scratch / "bert");
  const auto options = tests::planted_job(planted, scratch.path(), 4);
  const auto refused = [&](const auto& change) {
    auto changed = options;
    change(changed);
    return tests::error_of([&] { tests::run(changed); });
  };
  tests::expect_parts(
      refused([&](auto& job) { job.target = other.target; }), "vit", "bert", "one family");
  tests::expect_parts(refused([&](auto& job) { job.tuned = other.tuned; }), "not a tune");
  tests::expect_parts(refused([&](auto& job) { job.tuned = job.source; }), "changes nothing");
  tests::expect_parts(refused([&](auto& job) { job.calibration.clear(); }), "needs examples");
  tests::expect_parts(refused([&](auto& job) { job.write = "adapter"; }), "--write adapter");
  tests::expect_parts(refused([&](auto& job) { job.align.memory = 1000; }), "one block", "MB");
  tests::expect_parts(refused([&](auto& job) { job.out = scratch.path(); }), "is or holds");
  tests::expect_parts(refused([&](auto& job) { job.out = scratch / "bert"; }), "exists");
  EXPECT_FALSE(fs::exists(options.out));
}

}  // namespace
}  // namespace theseus::output
