#include "theseus/machine/processor.h"

#include <gtest/gtest.h>

#include "tests/support/processors.h"

namespace theseus::machine {
namespace {

using testing::recorded;

TEST(Processor, IsDescribedByItsDump) {
  const auto zen4 = describe(recorded("zen4"));
  EXPECT_EQ(zen4.vendor, "AuthenticAMD");
  EXPECT_EQ(zen4.name, "AMD EPYC 9654 96-Core Processor");
  EXPECT_EQ(zen4.family, 0x19);
  EXPECT_EQ(zen4.model, 0x11);
  EXPECT_EQ(extensions_text(zen4), "avx avx2 avx512 avx512_bf16");

  const auto sapphire = describe(recorded("sapphire_rapids"));
  EXPECT_EQ(sapphire.vendor, "GenuineIntel");
  EXPECT_EQ(sapphire.family, 6);
  EXPECT_EQ(sapphire.model, 143);
  EXPECT_EQ(extensions_text(sapphire), "avx avx2 avx512 avx512_bf16 avx512_fp16 amx_bf16");
}

TEST(Processor, HasTheExtensionsOfItsTime) {
  const std::pair<const char*, const char*> expected[] = {
      {"sandy_bridge", "avx"},
      {"haswell", "avx avx2"},
      {"raptor_lake", "avx avx2"},
      {"zen2", "avx avx2"},
      {"zen3", "avx avx2"},
      {"hygon", "avx avx2"},
      {"skylake_x", "avx avx2 avx512"},
      {"ice_lake", "avx avx2 avx512"},
      {"cooper_lake", "avx avx2 avx512 avx512_bf16"},
      {"zen5", "avx avx2 avx512 avx512_bf16"},
  };
  for (const auto& [name, extensions] : expected) {
    EXPECT_EQ(extensions_text(describe(recorded(name))), extensions) << name;
  }
}

TEST(Processor, SaysThatAHypervisorHidesTheTiles) {
  const auto processor = describe(recorded("emerald_rapids_without_tiles"));
  EXPECT_EQ(processor.model, 207);
  EXPECT_TRUE(processor.amx_bf16);
  EXPECT_FALSE(processor.amx_described);
  EXPECT_TRUE(describe(recorded("emerald_rapids")).amx_described);
}

// An operating system, or a user of it, can leave AVX-512 or the tiles switched off.
TEST(Processor, HasNoExtensionWhoseRegistersAreNotSaved) {
  auto dump = recorded("sapphire_rapids");
  dump.xcr0 = 0x7;
  EXPECT_EQ(
      extensions_text(describe(dump)), "avx avx2 amx_bf16 (without tiles: hidden or switched off)");
  dump.xcr0 = 0x3;
  EXPECT_FALSE(describe(dump).avx);
}

TEST(Processor, DumpIsWrittenAsItIsRead) {
  auto dump = recorded("emerald_rapids_without_tiles");
  EXPECT_EQ(cpuid_text(parse_cpuid(cpuid_text(dump))), cpuid_text(dump));
  EXPECT_EQ(dump.xcr0, 0x602E7u);
  EXPECT_GT(dump.entries.size(), 8u);
}

TEST(Processor, AnswersNothingForNoDump) {
  const auto processor = describe(parse_cpuid("not a dump\nCPUID 1: what\n"));
  EXPECT_EQ(processor.vendor, "");
  EXPECT_EQ(extensions_text(processor), "none");
}

#if defined(__x86_64__)
TEST(Processor, OfThisMachineSaysItsMaker) {
  EXPECT_EQ(describe(read_cpuid()).vendor.size(), 12u);
}
#endif

}  // namespace
}  // namespace theseus::machine
