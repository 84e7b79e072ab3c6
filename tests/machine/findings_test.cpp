#include "theseus/machine/findings.h"

#include <gtest/gtest.h>

#include "tests/support/processors.h"

namespace theseus::machine {
namespace {

using testing::recorded;

Findings healthy(const char* processor) {
  return {
      .processor = describe(recorded(processor)),
      .processors = 2,
      .cores = 2,
      .clock = 2.1e9,
      .kernel = "SkylakeX",
      .float32 = 152e9,
      .float64 = 74e9,
      .bfloat16 = 300e9};
}

bool says(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

TEST(Findings, AHealthyMachineIsNotWarnedOf) {
  EXPECT_TRUE(warnings(healthy("emerald_rapids")).empty());
}

// As found on Intel's server processor of 2023 with OpenBLAS 0.3.21: 31 Gflop/s of 152.
TEST(Findings, OldKernelsAreNamedWithTheCure) {
  auto found = healthy("emerald_rapids");
  found.kernel = "Prescott";
  found.float32 = 31e9;
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(texts[0], "Prescott")) << texts[0];
  EXPECT_TRUE(says(texts[0], "31 Gflop/s")) << texts[0];
  EXPECT_TRUE(says(texts[0], "start it by the program theseus")) << texts[0];
  found.named_kernel = "prescott";
  EXPECT_TRUE(says(warnings(found)[0], "unset OPENBLAS_CORETYPE")) << warnings(found)[0];
}

TEST(Findings, KernelsThatTheUserNamedAreComparedWithTheBest) {
  auto found = healthy("zen5");
  found.kernel = "Haswell";
  found.named_kernel = "haswell";
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(texts[0], "OPENBLAS_CORETYPE=haswell")) << texts[0];
  EXPECT_TRUE(says(texts[0], "SkylakeX")) << texts[0];
  found.named_kernel = "SkylakeX";
  EXPECT_TRUE(warnings(found).empty());
  // Level on Zen 4, by measurement.
  found = healthy("zen4");
  found.named_kernel = "Haswell";
  EXPECT_TRUE(warnings(found).empty());
}

TEST(Findings, AnotherSlowLibraryIsSeenByItsRate) {
  auto found = healthy("zen5");
  found.kernel = "";
  found.float32 = 20e9;
  found.bfloat16 = 20e9;
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(texts[0], "20 Gflop/s")) << texts[0];
}

TEST(Findings, AProcessorWithoutAvxMayUseOldKernels) {
  Findings found = {.clock = 2e9, .kernel = "Nehalem", .float32 = 14e9};
  EXPECT_TRUE(warnings(found).empty());
}

TEST(Findings, ThreadsOfOneCoreAreCounted) {
  auto found = healthy("zen4");
  found.cores = 1;
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(texts[0], "2 processors are threads of 1 core,")) << texts[0];
}

TEST(Findings, HalfPrecisionThatIsSlowerIsSaid) {
  auto found = healthy("emerald_rapids");
  found.bfloat16 = 80e9;
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(texts[0], "80 against 152")) << texts[0];
}

TEST(Findings, AnEnvironmentThatNobodyPreparedIsSaidWithTheLineToSet) {
  auto found = healthy("emerald_rapids_without_tiles");
  found.unset = settings_for(found.processor, {});
  const auto texts = warnings(found);
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_TRUE(says(
      texts[0], "OPENBLAS_CORETYPE=SkylakeX DNNL_MAX_CPU_ISA=AVX512_CORE_BF16 GOMP_SPINCOUNT=1000"))
      << texts[0];
}

}  // namespace
}  // namespace theseus::machine
