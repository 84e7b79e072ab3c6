#include "theseus/machine/environment.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/support/processors.h"

namespace theseus::machine {
namespace {

using testing::recorded;

const Libraries kDebian = {};
const Libraries kWithMkl = {
    .mkl = true, .onednn_knows_fp16 = true, .openblas = "/lib/libopenblas.so.0"};

std::map<std::string, std::string> chosen(const char* processor, const Libraries& libraries) {
  std::map<std::string, std::string> values;
  for (const auto& setting : settings_for(describe(recorded(processor)), libraries)) {
    values[setting.name] = setting.value;
    EXPECT_NE(setting.why, "") << setting.name;
  }
  return values;
}

struct Row {
  const char* processor;
  const char* kernel;       // of OpenBLAS; "" leaves the choice to it
  const char* limit;        // of oneDNN 2.6
  const char* newer_limit;  // of oneDNN 3
  bool replaces_mkl;
};

constexpr Row kTable[] = {
    {"zen2", "", "", "", false},
    {"zen3", "", "", "", false},
    {"zen4", "", "", "", false},
    {"zen5", "SkylakeX", "", "", true},
    {"zen5_virtual", "SkylakeX", "", "", true},
    {"hygon", "", "", "", false},
    {"sandy_bridge", "Sandybridge", "", "", false},
    {"haswell", "Haswell", "", "", false},
    {"raptor_lake", "Haswell", "", "", false},
    {"skylake_x", "SkylakeX", "", "", false},
    {"ice_lake", "SkylakeX", "", "", false},
    {"cooper_lake", "SkylakeX", "", "", false},
    {"sapphire_rapids", "SkylakeX", "", "", false},
    {"emerald_rapids", "SkylakeX", "", "", false},
    {"emerald_rapids_without_tiles", "SkylakeX", "AVX512_CORE_BF16", "AVX512_CORE_FP16", false},
    {"unknown", "SkylakeX", "", "", true},
};

std::string value_or_empty(const std::map<std::string, std::string>& values, const char* name) {
  const auto found = values.find(name);
  return found == values.end() ? "" : found->second;
}

TEST(Environment, FollowsFromTheProcessorAndTheLibraries) {
  for (const auto& row : kTable) {
    const auto debian = chosen(row.processor, kDebian);
    EXPECT_EQ(value_or_empty(debian, "OPENBLAS_CORETYPE"), row.kernel) << row.processor;
    EXPECT_EQ(value_or_empty(debian, "DNNL_MAX_CPU_ISA"), row.limit) << row.processor;
    EXPECT_EQ(value_or_empty(debian, "LD_PRELOAD"), "") << row.processor;
    EXPECT_EQ(value_or_empty(debian, "GOMP_SPINCOUNT"), "1000") << row.processor;
    const auto with_mkl = chosen(row.processor, kWithMkl);
    EXPECT_EQ(value_or_empty(with_mkl, "DNNL_MAX_CPU_ISA"), row.newer_limit) << row.processor;
    EXPECT_EQ(value_or_empty(with_mkl, "LD_PRELOAD"), row.replaces_mkl ? kWithMkl.openblas : "")
        << row.processor;
  }
}

TEST(Environment, AProcessorWithoutCpuidGetsNoKernel) {
  const auto settings = settings_for(Processor{}, kWithMkl);
  ASSERT_EQ(settings.size(), 1u);
  EXPECT_EQ(settings.front().name, "GOMP_SPINCOUNT");
}

TEST(Environment, LeavesWhatTheUserSet) {
  const auto settings = settings_for(describe(recorded("emerald_rapids_without_tiles")), kDebian);
  const std::map<std::string, std::string> given = {
      {"OPENBLAS_CORETYPE", ""}, {"OMP_WAIT_POLICY", "passive"}};
  const auto open = missing(settings, [&](const std::string& name) {
    const auto found = given.find(name);
    return found == given.end() ? std::nullopt : std::optional<std::string>(found->second);
  });
  EXPECT_EQ(assignments(open), "DNNL_MAX_CPU_ISA=AVX512_CORE_BF16");
}

}  // namespace
}  // namespace theseus::machine
