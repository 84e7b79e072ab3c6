#include "theseus/transport/source_update.h"

#include <cmath>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/checkpoint/write.h"

#include "tests/support/cases.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"
#include "tests/support/torch_save.h"

namespace theseus::transport {
namespace {

namespace fs = std::filesystem;
using Tensors = std::map<std::string, at::Tensor>;

class SourceUpdateTest : public testing::Test {
 protected:
  SourceUpdateTest()
      : planted_(tests::plant(
            "vit", tests::Planting::kPermuted, scratch_.path(), {.changes = tests::Changes::kAll})),
        source_(model::Model::open(planted_.source)) {}

  fs::path file(const Tensors& tensors) const {
    const auto path = scratch_ / "tuned.safetensors";
    tests::write_inputs(path, tensors);
    return path;
  }
  std::string refusal(const fs::path& tuned) const {
    return tests::error_of([&] {
      const auto update = SourceUpdate::open(tuned, source_);
      require_change(update, source_.architecture());
    });
  }
  const model::Parameter& parameter(const std::string& ending) const {
    for (const auto& candidate : source_.architecture().parameters) {
      if (candidate.name.ends_with(ending)) {
        return candidate;
      }
    }
    throw InternalError(ending);
  }

  tests::ScratchDir scratch_;
  tests::Planted planted_;
  model::Model source_;
};

TEST_F(SourceUpdateTest, IsTheDifferenceOfTwoModels) {
  const auto update = SourceUpdate::open(planted_.tuned, source_);
  EXPECT_FALSE(update.is_adapter());
  EXPECT_TRUE(update.notes().empty());
  const auto expected = tests::difference(planted_.tuned, planted_.source);
  for (const auto& one : source_.architecture().parameters) {
    const auto delta = update.find_delta(one);
    EXPECT_EQ(update.changes(one), expected.contains(one.tensor)) << one.name;
    ASSERT_EQ(delta.defined(), expected.contains(one.tensor)) << one.name;
    if (delta.defined()) {
      EXPECT_EQ(delta.scalar_type(), at::kFloat);
      EXPECT_LT(tests::frobenius_error(delta, expected.at(one.tensor)), 1e-7) << one.name;
    }
    EXPECT_FALSE(update.find_low_rank(one));
  }
}

TEST_F(SourceUpdateTest, TakesPartsOfFusedTensors) {
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("timm_vit", tests::Planting::kPermuted, scratch.path());
  const auto source = model::Model::open(planted.source);
  const auto update = SourceUpdate::open(planted.tuned, source);
  const auto expected = tests::difference(planted.tuned, planted.source);
  int64_t fused = 0;
  for (const auto& one : source.architecture().parameters) {
    if (one.fused()) {
      EXPECT_LT(
          tests::frobenius_error(update.find_delta(one), tests::part_of(expected, one)), 1e-7);
      ++fused;
    }
  }
  EXPECT_GE(fused, 6);
}

TEST_F(SourceUpdateTest, TakesAStateDictThatLacksTensorsAsUnchangedThere) {
  const auto tuned = tests::read_tensors(planted_.tuned);
  const auto& one = parameter("0.mlp.fc1.weight");
  for (const auto& prefix : {"", "module.", "_orig_mod."}) {
    const auto update =
        SourceUpdate::open(file({{prefix + one.stored, tuned.at(one.stored)}}), source_);
    int64_t changed = 0;
    for (const auto& candidate : source_.architecture().parameters) {
      changed += update.changes(candidate) ? 1 : 0;
    }
    EXPECT_EQ(changed, 1);
    EXPECT_TRUE(update.changes(one));
    ASSERT_EQ(update.notes().size(), 1U);
    tests::expect_parts(update.notes()[0], "lacks", "unchanged");
  }
  const auto pickled = scratch_ / "tuned.pt";
  tests::torch_save(pickled, {{one.stored, tuned.at(one.stored)}});
  EXPECT_TRUE(SourceUpdate::open(pickled, source_).changes(one));
}

TEST_F(SourceUpdateTest, SaysWhatItDoesNotCarry) {
  auto tuned = tests::read_tensors(planted_.tuned);
  tuned["new_head.weight"] = at::zeros({2, 2});
  const auto update = SourceUpdate::open(file(tuned), source_);
  ASSERT_EQ(update.notes().size(), 1U);
  tests::expect_parts(update.notes()[0], "not carried", "(1)", "new_head.weight");
}

TEST_F(SourceUpdateTest, SaysWhenDtypesDiffer) {
  auto tuned = tests::read_tensors(planted_.tuned);
  for (auto& [name, value] : tuned) {
    value = value.to(at::kHalf);
  }
  const auto update = SourceUpdate::open(file(tuned), source_);
  ASSERT_EQ(update.notes().size(), 1U);
  tests::expect_parts(update.notes()[0], "F16", "F32", "rounding");
}

TEST_F(SourceUpdateTest, RefusesWhatIsNoTuneOfTheSource) {
  const auto base = tests::read_tensors(planted_.source);
  const auto& one = parameter("0.mlp.fc1.weight");
  tests::expect_parts(refusal(planted_.source), "changes nothing");
  tests::expect_parts(refusal(file({{"x", at::zeros({1})}})), "not a tune", "none", "x");
  tests::expect_parts(
      refusal(file({{one.stored, at::zeros({2, 3})}})), "other shapes", one.stored, "[2, 3]");
  const auto message = tests::error_of([&] {
    const auto update =
        SourceUpdate::open(file({{one.stored, at::full_like(base.at(one.stored), NAN)}}), source_);
    update.find_delta(one);
  });
  tests::expect_parts(message, "NaN", one.stored);
  tests::expect_parts(refusal(tests::case_path("adapted_llama_adapter")), "adapted_llama_adapter");
  tests::expect_parts(refusal(scratch_ / "nothing"), "nothing");
}

TEST_F(SourceUpdateTest, GivesAnAdaptersFactorsAndTheirProduct) {
  const auto source = tests::open_case("adapted_llama");
  const auto update = SourceUpdate::open(tests::case_path("adapted_llama_adapter"), source);
  EXPECT_TRUE(update.is_adapter());
  int64_t found = 0;
  for (const auto& one : source.architecture().parameters) {
    const auto factors = update.find_low_rank(one);
    EXPECT_EQ(factors.has_value(), update.changes(one)) << one.name;
    if (factors) {
      const auto product = at::mm(factors->up, factors->down) * factors->scale;
      EXPECT_LT(tests::frobenius_error(update.find_delta(one), product), 1e-6) << one.name;
      ++found;
    }
  }
  EXPECT_EQ(found, 2 * 3 + 1);  // q, v and down of two blocks, and the head
}

}  // namespace
}  // namespace theseus::transport
