// A walk that is interrupted anywhere gives, bit for bit, what it gives at one go.

#include "theseus/transport/resume.h"

#include <utility>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/transport/aligner.h"
#include "theseus/transport/plan.h"

#include "tests/support/deepen.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::transport {
namespace {

namespace fs = std::filesystem;

struct Interrupted {};

// What a sink keeps on disk.
struct Kept {
  std::map<int64_t, MapSet> stages;   // of the group at work
  std::map<int64_t, MapSet> written;  // by group.first: all of its stages' maps
};

class ResumeFixture {
 public:
  explicit ResumeFixture(const std::string& name, int64_t blocks) {
    const auto planted = tests::plant(name, tests::Planting::kWidened, scratch_.path());
    tests::deepen(planted.target, scratch_ / "deep", blocks);
    const auto job = tests::planted_job(planted, scratch_.path(), kSequences);
    source_ = planted.source;
    target_ = scratch_ / "deep";
    calibration_ = job.calibration;
    options_.sampling.batch_size = kBatch;
  }

  AlignOptions& options() { return options_; }
  fs::path work(const std::string& name) const {
    fs::create_directories(scratch_ / name);
    return scratch_ / name;
  }

  // A process of its own: opens everything anew and stops at the given call of the watch. Returns
  // whether it came to the end.
  bool run(const fs::path& work, int64_t stop, double seconds, Kept& kept) const {
    auto source = model::Model::open(source_);
    auto target = model::Model::open(target_);
    const auto calibration = stats::Calibration::open(
        calibration_, source.architecture(), target.architecture(), options_.sampling);
    Aligner aligner(
        source, target, &calibration, options_, [](double, double, const std::string&) {});
    kept.stages.clear();
    const Sink sink{
        .stage = [&](int64_t stage, const MapSet& maps,
                     const stats::Moments&) { kept.stages[stage] = maps; },
        .group =
            [&](int64_t, int64_t) {
              return [&kept, stages = std::exchange(kept.stages, {})]() mutable {
                stages.merge(kept.written);  // what comes again is the newer
                kept.written = std::move(stages);
              };
            }};
    int64_t calls = 0;
    try {
      aligner.run(
          needed(source, target, aligner), work, sink,
          [&](double done, double all, const std::string&) {
            EXPECT_LE(done, all);
            if (calls++ == stop) {
              throw Interrupted();
            }
          },
          seconds);
    } catch (const Interrupted&) {
      return false;
    }
    return true;
  }

  Schedule schedule() const {
    auto source = model::Model::open(source_);
    auto target = model::Model::open(target_);
    const auto calibration = stats::Calibration::open(
        calibration_, source.architecture(), target.architecture(), options_.sampling);
    const Aligner aligner(
        source, target, &calibration, options_, [](double, double, const std::string&) {});
    return aligner.schedule(needed(source, target, aligner));
  }

 private:
  static constexpr int64_t kSequences = 7;
  static constexpr int64_t kBatch = 4;

  static SpaceSet needed(
      const model::Model& source, const model::Model& target, const Aligner& aligner) {
    return spaces_of(
        make_plan(source, target, aligner.route(), {.heads = true, .towers = aligner.towers()}));
  }

  tests::ScratchDir scratch_;
  fs::path source_, target_, calibration_;
  AlignOptions options_;
};

void expect_same(const Kept& found, const Kept& expected) {
  ASSERT_EQ(found.written.size(), expected.written.size());
  for (const auto& [stage, maps] : expected.written) {
    ASSERT_TRUE(found.written.contains(stage)) << "stage " << stage << " is lost";
    ASSERT_EQ(found.written.at(stage).size(), maps.size()) << "stage " << stage;
    for (const auto& [space, map] : maps) {
      EXPECT_TRUE(at::equal(found.written.at(stage).at(space).dense(), map.dense())) << space;
    }
  }
}

constexpr int64_t kNever = -1;

// Interrupted once at every call, each in a directory of its own; then at a later one each time in
// the same one. How often it saves depends on how long that takes.
void expect_resumes(const ResumeFixture& fixture, const Kept& expected, const std::string& word) {
  bool whole = false;
  for (int64_t stop = 0; !whole; ++stop) {
    SCOPED_TRACE(c10::str(word, ", stopped at call ", stop));
    const auto work = fixture.work(c10::str(word, "-", stop));
    Kept kept;
    whole = fixture.run(work, stop, 0, kept);
    EXPECT_TRUE(whole || fixture.run(work, kNever, 0, kept));
    expect_same(kept, expected);
    EXPECT_TRUE(fs::is_empty(work));
    EXPECT_TRUE(!whole || stop > 20);
  }
  const auto work = fixture.work(word + "-often");
  Kept kept;
  for (int64_t stop = 1; !fixture.run(work, stop, 0, kept); stop += 2) {
    ASSERT_LT(stop, 1000);
  }
  expect_same(kept, expected);
}

Kept at_one_go(const ResumeFixture& fixture) {
  Kept kept;
  EXPECT_TRUE(fixture.run(fixture.work("whole"), kNever, 1e9, kept));
  return kept;
}

TEST(Resume, GoesOnWithStatesInMemory) {
  const c10::NoGradGuard no_gradients;
  const ResumeFixture fixture("openclip", 3);
  EXPECT_FALSE(fixture.schedule().spill);
  expect_resumes(fixture, at_one_go(fixture), "memory");
}

TEST(Resume, GoesOnWithRows) {
  const c10::NoGradGuard no_gradients;
  ResumeFixture fixture("vit", 5);
  fixture.options().statistics = Statistics::kRows;
  fixture.options().tokens = "mean";  // 7 rows
  const auto expected = at_one_go(fixture);
  int64_t factored = 0;
  for (const auto& [stage, maps] : expected.written) {
    for (const auto& [space, map] : maps) {
      factored += map.factors.defined() ? 1 : 0;
    }
  }
  EXPECT_GE(factored, 6);
  expect_resumes(fixture, expected, "rows");
}

TEST(Resume, GoesOnWithStatesInFiles) {
  const c10::NoGradGuard no_gradients;
  ResumeFixture fixture("t5", 3);
  const auto expected = at_one_go(fixture);
  fixture.options().memory = fixture.schedule().cost.peak - 1;
  ASSERT_TRUE(fixture.schedule().spill);
  EXPECT_GT(fixture.schedule().groups.size(), 1U);
  expect_resumes(fixture, expected, "files");
}

// How much memory is free may change while a job is interrupted.
TEST(Resume, GoesOnWithOtherMemory) {
  const c10::NoGradGuard no_gradients;
  for (const bool spill_first : {false, true}) {
    ResumeFixture fixture("vit", 4);
    const auto expected = at_one_go(fixture);
    const auto least = fixture.schedule().cost.peak - 1;
    for (int64_t stop = 1; stop < 12; stop += 3) {
      SCOPED_TRACE(c10::str("stopped at call ", stop, ", spill first: ", spill_first));
      const auto work = fixture.work(c10::str("other-", stop));
      Kept kept;
      fixture.options().memory = spill_first ? least : 0;
      EXPECT_FALSE(fixture.run(work, stop, 0, kept));
      fixture.options().memory = spill_first ? 0 : least;
      EXPECT_TRUE(fixture.run(work, kNever, 0, kept));
      expect_same(kept, expected);
    }
  }
}

}  // namespace
}  // namespace theseus::transport
