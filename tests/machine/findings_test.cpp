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

// Of a machine with one fault.
std::string only_warning(const Findings& found) {
  const auto texts = warnings(found);
  EXPECT_EQ(texts.size(), 1u);
  return texts.empty() ? "" : texts.front();
}

TEST(Findings, AHealthyMachineIsNotWarnedOf) {
  EXPECT_TRUE(warnings(healthy("emerald_rapids")).empty());
}

// As found on Intel's server processor of 2023 with OpenBLAS 0.3.21: 31 Gflop/s of 152.
TEST(Findings, OldKernelsAreNamedWithTheCure) {
  auto found = healthy("emerald_rapids");
  found.kernel = "Prescott";
  found.float32 = 31e9;
  const auto text = only_warning(found);
  EXPECT_TRUE(says(text, "Prescott")) << text;
  EXPECT_TRUE(says(text, "31 Gflop/s")) << text;
  EXPECT_TRUE(says(text, "start it by the program theseus")) << text;
  found.named_kernel = "prescott";
  EXPECT_TRUE(says(only_warning(found), "unset OPENBLAS_CORETYPE")) << only_warning(found);
}

TEST(Findings, KernelsThatTheUserNamedAreComparedWithTheBest) {
  auto found = healthy("zen5");
  found.kernel = "Haswell";
  found.named_kernel = "haswell";
  const auto text = only_warning(found);
  EXPECT_TRUE(says(text, "OPENBLAS_CORETYPE=haswell")) << text;
  EXPECT_TRUE(says(text, "SkylakeX")) << text;
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
  const auto text = only_warning(found);
  EXPECT_TRUE(says(text, "20 Gflop/s")) << text;
}

TEST(Findings, AProcessorWithoutAvxMayUseOldKernels) {
  Findings found = {.clock = 2e9, .kernel = "Nehalem", .float32 = 14e9};
  EXPECT_TRUE(warnings(found).empty());
}

TEST(Findings, ThreadsOfOneCoreAreCounted) {
  auto found = healthy("zen4");
  found.cores = 1;
  const auto text = only_warning(found);
  EXPECT_TRUE(says(text, "2 processors are threads of 1 core,")) << text;
}

TEST(Findings, HalfPrecisionThatIsSlowerIsSaid) {
  auto found = healthy("emerald_rapids");
  found.bfloat16 = 80e9;
  const auto text = only_warning(found);
  EXPECT_TRUE(says(text, "80 against 152")) << text;
}

TEST(Findings, AnEnvironmentThatNobodyPreparedIsSaidWithTheLineToSet) {
  auto found = healthy("emerald_rapids_without_tiles");
  found.unset = settings_for(found.processor, {});
  const auto text = only_warning(found);
  EXPECT_TRUE(says(
      text, "OPENBLAS_CORETYPE=SkylakeX DNNL_MAX_CPU_ISA=AVX512_CORE_BF16 GOMP_SPINCOUNT=1000"))
      << text;
}

}  // namespace
}  // namespace theseus::machine
