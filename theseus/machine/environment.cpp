#include "theseus/machine/environment.h"

#include <cstdlib>
#include <unistd.h>

namespace theseus::machine {
namespace {

constexpr const char* kOneDnnLimit = "DNNL_MAX_CPU_ISA";

bool known_amd(const Processor& processor) {
  return (processor.vendor == "AuthenticAMD" || processor.vendor == "HygonGenuine") &&
         processor.family <= 0x19;
}

// OpenBLAS 0.3.21 takes Prescott's kernels, of 2004, on Intel's processors whose number it does not know (Raptor Lake,
// Emerald Rapids). Others that it does not know (AMD's family 0x1A, Zen 5) it asks for AVX-512 with an undefined
// subleaf, so that the answer is chance. What the extensions allow is right for all of them. AMD's up to family 0x19
// (Zen 4) it knows, and its choice is the best or level. Its table of names that may be asked for ends before
// Cooperlake, whose float32 and float64 kernels are SkylakeX's.
const char* openblas_kernel(const Processor& processor) {
  return known_amd(processor) ? nullptr
         : processor.avx512   ? "SkylakeX"
         : processor.avx2     ? "Haswell"
         : processor.avx      ? "Sandybridge"
                              : nullptr;
}

}  // namespace

std::vector<Setting> settings_for(const Processor& processor, const Libraries& libraries) {
  std::vector<Setting> settings;
  if (const auto* kernel = openblas_kernel(processor)) {
    settings.push_back(
        {"OPENBLAS_CORETYPE", kernel,
         "OpenBLAS does not know every processor and may take kernels for an old one"});
  }
  if (processor.amx_bf16 && !processor.amx_described) {
    const bool fp16 = libraries.onednn_knows_fp16 && processor.avx512_fp16;
    settings.push_back(
        {kOneDnnLimit, fp16 ? "AVX512_CORE_FP16" : "AVX512_CORE_BF16",
         "the processor shows AMX and hides how its tiles are laid out, and oneDNN would "
         "die by an illegal instruction",
         "ONEDNN_MAX_CPU_ISA"});
  }
  // MKL and OpenBLAS are equally fast with AVX2, so OpenBLAS replaces MKL only where there is AVX-512.
  if (libraries.mkl && !libraries.openblas.empty() && processor.vendor != "GenuineIntel" &&
      processor.avx512 && !known_amd(processor)) {
    settings.push_back(
        {"LD_PRELOAD", libraries.openblas,
         "MKL leaves AVX-512 unused on processors of other makers than Intel, and OpenBLAS "
         "does not"});
  }
  settings.push_back(
      {"GOMP_SPINCOUNT", "1000", "threads that wait soon leave their processor to other programs",
       "OMP_WAIT_POLICY"});
  return settings;
}

Libraries built_with() {
  Libraries libraries = {.mkl = THESEUS_MKL, .onednn_knows_fp16 = THESEUS_TORCH_MAJOR >= 2};
  if (::access(THESEUS_OPENBLAS, R_OK) == 0) {
    libraries.openblas = THESEUS_OPENBLAS;
  }
  return libraries;
}

std::vector<Setting> settings_here() {
  return settings_for(describe(read_cpuid()), built_with());
}

std::optional<std::string> look_up(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::vector<Setting> missing(const std::vector<Setting>& settings, const Lookup& lookup) {
  std::vector<Setting> open;
  for (const auto& setting : settings) {
    if (!lookup(setting.name) && (setting.yields.empty() || !lookup(setting.yields))) {
      open.push_back(setting);
    }
  }
  return open;
}

void set_missing() {
  std::string names;
  for (const auto& setting : missing(settings_here())) {
    ::setenv(setting.name.c_str(), setting.value.c_str(), 0);
    names.append(names.empty() ? "" : " ").append(setting.name);
  }
  ::setenv("THESEUS_SET", names.c_str(), 1);
}

void set_what_is_read_late() {
  for (const auto& setting : settings_here()) {
    if (setting.name == kOneDnnLimit && !look_up(setting.yields)) {
      ::setenv(kOneDnnLimit, setting.value.c_str(), 0);
    }
  }
}

std::string assignments(const std::vector<Setting>& settings) {
  std::string text;
  for (const auto& [name, value, why, yields] : settings) {
    text.append(text.empty() ? "" : " ").append(name).append("=").append(value);
  }
  return text;
}

}  // namespace theseus::machine
