// Parity with other people's implementations.

#include "theseus/model/golden.h"

#include <limits>
#include <optional>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "theseus/update/adapter.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"

namespace theseus::model {
namespace {

constexpr double kTolerance = 1e-5;  // relative, float32

void expect_parity(const tests::GoldenCase& golden_case, const OpenOptions& options) {
  const c10::NoGradGuard no_gradients;
  auto model = Model::open(golden_case.model, options);
  std::optional<update::Adapter> adapter;
  if (!golden_case.adapter.empty()) {
    adapter = update::read_adapter(golden_case.adapter);
  }
  const auto golden = checkpoint::Checkpoint::open(golden_case.golden);
  const auto rows = compare_with_golden(model, golden, adapter ? &*adapter : nullptr, kTolerance);
  for (const auto& row : rows) {
    EXPECT_TRUE(row.passed) << row.name << " " << row.error << " " << row.problem;
  }
}

TEST(Golden, EveryCaseIsWithinTolerance) {
  const auto cases = tests::golden_cases();
  ASSERT_GE(cases.size(), 18U);
  for (const auto& golden_case : cases) {
    SCOPED_TRACE(golden_case.name);
    expect_parity(golden_case, {});
  }
  if (!tests::has_shared()) {
    GTEST_SKIP() << "../shared/golden is not here; only the cases in the tree were run";
  }
}

TEST(Golden, EveryCaseIsWithinToleranceOnCuda) {
  if (!torch::cuda::is_available()) {
    GTEST_SKIP() << "no CUDA device";
  }
  for (const auto& golden_case : tests::golden_cases()) {
    SCOPED_TRACE(golden_case.name);
    expect_parity(golden_case, {.placement = {.device = c10::Device(c10::kCUDA, 0)}});
  }
}

TEST(Golden, AWrongNumberIsNotPassed) {
  auto model = tests::open_case("mistral");
  const auto rows = compare_with_golden(
      model,
      checkpoint::Checkpoint::open(tests::case_path("llama_left_padded") / "golden.safetensors"),
      nullptr, kTolerance);
  int64_t passed = 0;
  for (const auto& row : rows) {
    passed += row.passed ? 1 : 0;
  }
  EXPECT_EQ(passed, 0);
}

TEST(RelativeError, IsTheLargestDifferenceOverTheLargestValue) {
  const auto expected = at::tensor({1.0, -4.0}, at::kDouble);
  EXPECT_DOUBLE_EQ(relative_error(at::tensor({1.5, -4.0}, at::kDouble), expected), 0.125);
  EXPECT_DOUBLE_EQ(relative_error(at::zeros({2}), at::zeros({2})), 0);
  EXPECT_DOUBLE_EQ(relative_error(at::ones({2}) / 2, at::zeros({2})), 0.5);
}

TEST(RelativeError, IsInfiniteForNanAndForAnotherShape) {
  const auto infinity = std::numeric_limits<double>::infinity();
  const auto nan = at::full({2}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(relative_error(nan, at::ones({2})), infinity);
  EXPECT_EQ(relative_error(at::ones({2}), nan), infinity);
  EXPECT_EQ(relative_error(at::ones({3}), at::ones({2})), infinity);
}

}  // namespace
}  // namespace theseus::model
