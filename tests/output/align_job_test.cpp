// Maps made once serve any number of updates.

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "theseus/output/job.h"
#include "theseus/transport/alignment.h"

#include "tests/support/deepen.h"
#include "tests/support/expect_error.h"
#include "tests/support/job.h"
#include "tests/support/planted.h"
#include "tests/support/scratch_dir.h"

namespace theseus::output {
namespace {

namespace fs = std::filesystem;
using tests::Changes;
using tests::Planting;

void expect_same_files(const fs::path& left, const fs::path& right) {
  const auto expected = tests::update_of(left);
  const auto found = tests::update_of(right);
  EXPECT_EQ(found.size(), expected.size());
  for (const auto& [name, value] : expected) {
    EXPECT_TRUE(at::equal(found.at(name), value)) << name;
  }
}

// Aligns, then carries each update with the alignment and directly.
void expect_like_direct(
    const JobOptions& options, const std::vector<fs::path>& updates, const fs::path& scratch) {
  auto align = options;
  align.tuned.clear();
  align.out = scratch / "alignment";
  align_job(align, tests::kQuiet);
  for (const auto& tuned : updates) {
    auto direct = options;
    direct.tuned = tuned;
    direct.out = scratch / "direct";
    direct.fresh = true;
    tests::run(direct);
    auto aligned = direct;
    aligned.source.clear();  // the alignment knows it
    aligned.calibration.clear();
    aligned.alignment = align.out;
    aligned.out = scratch / "aligned";
    tests::run(aligned);
    expect_same_files(direct.out, aligned.out);
  }
}

TEST(AlignJob, GivesWhatTheDirectWayGives) {
  const c10::NoGradGuard no_gradients;
  for (const auto& name : {"bert", "clip", "llama", "openclip", "t5", "timm_vit", "vit"}) {
    SCOPED_TRACE(name);
    const tests::ScratchDir scratch;
    const auto planted =
        tests::plant(name, Planting::kWidened, scratch.path(), {.changes = Changes::kAll});
    const auto other = tests::plant(
        name, Planting::kPermuted, scratch / "other", {.changes = Changes::kWeights, .seed = 1});
    expect_like_direct(
        tests::planted_job(planted, scratch.path(), 32), {planted.tuned, other.tuned},
        scratch.path());
  }
}

TEST(AlignJob, GivesWhatTheDirectWayGivesToOtherDepths) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("bert", Planting::kWidened, scratch.path());
  tests::deepen(planted.target, scratch / "deep", 5);
  auto options = tests::planted_job(planted, scratch.path(), 32);
  options.target = scratch / "deep";
  expect_like_direct(options, {planted.tuned}, scratch.path());
}

TEST(AlignJob, IsForItsOwnPairOnly) {
  const c10::NoGradGuard no_gradients;
  const tests::ScratchDir scratch;
  const auto planted = tests::plant("vit", Planting::kWidened, scratch.path());
  auto options = tests::planted_job(planted, scratch.path(), 32);
  options.out = scratch / "alignment";
  options.tuned.clear();
  align_job(options, tests::kQuiet);
  options.alignment = options.out;
  options.calibration.clear();
  options.tuned = planted.tuned;
  options.out = scratch / "out";
  const auto refused = [&](const fs::path& source, const fs::path& target) {
    auto other = options;
    other.source = source;
    other.target = target;
    return tests::error_of([&] { tests::run(other); });
  };
  tests::expect_parts(refused(planted.source, planted.expected), "another target");
  tests::expect_parts(refused(planted.tuned, planted.target), "changes nothing");
  tests::expect_parts(
      tests::error_of([&] { transport::Alignment::open(scratch / "source"); }), "alignment.json",
      "theseus align");
}

}  // namespace
}  // namespace theseus::output
