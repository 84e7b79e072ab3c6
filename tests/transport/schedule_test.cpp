#include "theseus/transport/schedule.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "theseus/transport/depth.h"
#include "theseus/transport/plan.h"

#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::transport {
namespace {

class ScheduleTest : public testing::Test {
 protected:
  ScheduleTest() {
    const auto planted = tests::plant("vit", tests::Planting::kWidened, scratch_.path());
    tests::deepen(planted.source, scratch_ / "from", 6);
    tests::deepen(planted.target, scratch_ / "to", 6);
    source_ = std::make_unique<model::Model>(model::Model::open(scratch_ / "from"));
    target_ = std::make_unique<model::Model>(model::Model::open(scratch_ / "to"));
    route_ = make_route(source_->architecture(), target_->architecture(), Depth::kDivided, {});
  }

  Schedule schedule(
      int64_t memory, int64_t sequences = 1000, bool keep = false, bool gpu = false) const {
    const auto plan = make_plan(*source_, *target_, route_, {.towers = {"visual"}});
    const Solver solver(*source_, *target_, route_, maps::method("procrustes"), {});
    const auto needed = spaces_of(plan);
    const auto observed = solver.observed_for(needed);
    const ScheduleInput input{
        .source = source_->architecture(),
        .target = target_->architecture(),
        .route = route_,
        .observed = observed,
        .kept = keep ? observed : SpaceSet(),
        .needed = needed,
        .grams = {},
        .source_tokens = {{"visual", 17}},
        .target_tokens = {{"visual", 17}},
        .batch_size = 32,
        .sequences = sequences,
        .gpu = gpu,
        .loads = loads_of(plan, nullptr)};
    return make_schedule(input, memory);
  }

  // Every stage once and in order.
  static void expect_all_stages(const Schedule& schedule, int64_t stages) {
    int64_t next = 0;
    for (const auto& [first, last] : schedule.groups) {
      EXPECT_EQ(first, next);
      EXPECT_GT(last, first);
      next = last;
    }
    EXPECT_EQ(next, stages);
  }

  tests::ScratchDir scratch_;
  std::unique_ptr<model::Model> source_, target_;
  stats::Route route_;
};

constexpr int64_t kPlenty = int64_t{1} << 40;

TEST_F(ScheduleTest, TakesOneBlockAtATimeWhenStatesFit) {
  const auto plenty = schedule(kPlenty);
  expect_all_stages(plenty, 8);
  EXPECT_EQ(plenty.groups.size(), 8U);
  EXPECT_FALSE(plenty.spill);
  EXPECT_GT(plenty.cost.peak, plenty.cost.states);
  EXPECT_GT(plenty.cost.forward, 0);
  EXPECT_GT(plenty.cost.statistics, 0);
  EXPECT_GT(plenty.cost.solve, 0);
  EXPECT_GT(plenty.cost.carry, 0);
  EXPECT_FALSE(schedule(plenty.cost.peak).spill);
}

TEST_F(ScheduleTest, ReadsExamplesBesideTheFirstBlockOnAGpu) {
  const auto beside = schedule(kPlenty, 1000, false, true);
  expect_all_stages(beside, 8);
  EXPECT_EQ(beside.groups.size(), 7U);
  EXPECT_EQ(beside.groups.front(), std::pair(int64_t{0}, int64_t{2}));
  EXPECT_GE(beside.cost.peak, schedule(kPlenty).cost.peak);
}

TEST_F(ScheduleTest, CountsWhatAJobGoesOnFrom) {
  const auto beside_states = [&](int64_t sequences, bool keep) {
    const auto cost = schedule(kPlenty, sequences, keep).cost;
    return cost.saved - cost.states;
  };
  const auto sums = beside_states(10, false), rows = beside_states(10, true);
  EXPECT_GT(sums, 0);
  EXPECT_GT(rows, 0);
  EXPECT_EQ(beside_states(20, false), sums);
  EXPECT_EQ(beside_states(20, true), 2 * rows);
}

TEST_F(ScheduleTest, PutsStatesIntoFilesWhenTheyDoNotFit) {
  const auto plenty = schedule(kPlenty);
  for (int64_t memory = plenty.cost.peak - 1; memory > plenty.cost.peak - plenty.cost.states;
       memory -= plenty.cost.states / 7) {
    Schedule small;
    try {
      small = schedule(memory);
    } catch (const InputError&) {
      break;  // a block and the states of a batch no longer fit
    }
    expect_all_stages(small, 8);
    EXPECT_TRUE(small.spill);
    EXPECT_LE(small.cost.peak, memory);
    EXPECT_LE(small.groups.size(), plenty.groups.size());
    EXPECT_EQ(small.cost.states, plenty.cost.states);
    EXPECT_EQ(small.cost.forward, plenty.cost.forward);  // nothing is computed twice
  }
}

TEST_F(ScheduleTest, TakesLargerGroupsWhereStatesCostMore) {
  const int64_t many = 1'000'000;
  const auto roomy = schedule(schedule(kPlenty, many).cost.peak - 1, many);
  EXPECT_TRUE(roomy.spill);
  EXPECT_EQ(roomy.groups.size(), 1U);
  expect_all_stages(roomy, 8);
}

TEST_F(ScheduleTest, RefusesWhenOneBlockDoesNotFit) {
  tests::expect_parts(
      tests::error_of([&] { schedule(1'000'000); }), "one block", "1.0 MB", "--batch-size");
  const auto plenty = schedule(kPlenty, 32);  // a single batch: its states must fit
  EXPECT_NO_THROW(schedule(plenty.cost.peak, 32));
  EXPECT_THROW(schedule(plenty.cost.peak - 1, 32), InputError);
}

TEST_F(ScheduleTest, KeepsPairsOfOneTargetBlockTogether) {
  const auto planted = tests::plant("vit", tests::Planting::kPermuted, scratch_ / "short");
  target_ = std::make_unique<model::Model>(model::Model::open(planted.target));
  route_ = make_route(
      source_->architecture(), target_->architecture(), Depth::kDivided,
      at::ones({6, 2}, at::kDouble));
  const auto plenty = schedule(kPlenty);
  expect_all_stages(plenty, 8);
  EXPECT_EQ(plenty.groups.size(), 4U);  // two blocks, what comes before and what comes after
  for (const auto& [first, last] : plenty.groups) {
    if (first > 0 && last < 8) {
      const auto target = route_.pairs[static_cast<size_t>(first - 1)].target;
      EXPECT_EQ(route_.pairs[static_cast<size_t>(last - 2)].target, target);
      EXPECT_TRUE(last == 7 || route_.pairs[static_cast<size_t>(last - 1)].target != target);
    }
  }
}

TEST(AvailableMemory, IsSomething) {
  EXPECT_GT(available_memory(), 1'000'000);
}

TEST(AvailableMemory, IsThatOfAGpu) {
  if (!torch::cuda::is_available()) {
    GTEST_SKIP() << "no GPU";
  }
  const c10::Device gpu(c10::kCUDA, 0);
  const auto first = available_memory(gpu);
  EXPECT_GT(first, 1'000'000);
  EXPECT_NE(first, available_memory());
  const auto taken = at::empty({int64_t{1} << 30}, at::TensorOptions(gpu).dtype(at::kByte));
  EXPECT_EQ(available_memory(gpu), first) << taken.sizes();  // what is ours is free for us
}

}  // namespace
}  // namespace theseus::transport
