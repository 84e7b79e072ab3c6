#include "theseus/output/write_update.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/checkpoint.h"

#include "tests/support/expect_error.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

TEST(WriteUpdate, WritesEveryDeltaUnderItsName) {
  const tests::ScratchDir dir;
  int64_t last = 0;
  write_update(
      dir.path(), {{"b.weight", {2, 3}}, {"a.bias", {2}}},
      [](const std::string& tensor) {
        return tensor == "a.bias" ? at::tensor({1.0F, 2.0F}) : at::arange(6.0F).reshape({2, 3});
      },
      [&](int64_t done, int64_t all) {
        EXPECT_EQ(all, 32);
        last = done;
      });
  EXPECT_EQ(last, 32);
  const auto update = checkpoint::Checkpoint::open(dir / "update.safetensors");
  ASSERT_EQ(update.tensors().size(), 2U);
  EXPECT_TRUE(at::equal(update.tensor("b.weight"), at::arange(6.0F).reshape({2, 3})));
}

TEST(WriteUpdate, RefusesWhatIsMissingOrNotFinite) {
  const tests::ScratchDir dir;
  const auto write = [&](const at::Tensor& delta) {
    write_update(dir.path(), {{"w", {1}}}, [&](const std::string&) { return delta; });
  };
  tests::expect_parts(tests::error_of<InternalError>([&] { write({}); }), "no delta of w");
  tests::expect_parts(
      tests::error_of<NumericError>([&] { write(at::full({1}, INFINITY)); }), "delta of w", "NaN");
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
}

}  // namespace
}  // namespace theseus::output
