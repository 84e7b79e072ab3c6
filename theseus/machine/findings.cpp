#include "theseus/machine/findings.h"

#include <algorithm>
#include <cstdio>
#include <strings.h>

namespace theseus::machine {
namespace {

// Operations in a cycle that every core with these extensions can do in float32. The best do twice as many.
int operations_in_a_cycle(const Processor& processor) {
  return processor.avx2 ? 32 : processor.avx ? 16 : 8;
}

// Kernels for processors that had no AVX.
bool made_before_avx(const std::string& kernel) {
  constexpr const char* kOld[] = {"Prescott", "Core2", "Nehalem", "Barcelona", "Atom", "Penryn"};
  return std::find(std::begin(kOld), std::end(kOld), kernel) != std::end(kOld);
}

std::string billions(double rate) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f", rate / 1e9);
  return text;
}

std::string slow_product_text(const Findings& found) {
  constexpr double kFarBelow = 0.4;
  const auto possible = operations_in_a_cycle(found.processor) * found.clock;
  const bool slow = found.float32 > 0 && found.float32 < kFarBelow * possible;
  const bool old = found.processor.avx && made_before_avx(found.kernel);
  if (!slow && !old) {
    return "";
  }
  std::string text = "products are slow here: " + billions(found.float32) +
                     " Gflop/s a core in float32, where a processor with " +
                     extensions_text(found.processor) + " does " + billions(possible) + " or more";
  if (old) {
    return text + "; OpenBLAS uses its " + found.kernel + " kernels, made before AVX: " +
           (found.named_kernel.empty() ? "start it by the program theseus, which sets better ones"
                                       : "unset OPENBLAS_CORETYPE, which names them");
  }
  return text +
         "; other jobs may be using the same cores, or the BLAS library may not know this "
         "processor";
}

// The user's word is kept, and may cost half of the speed.
std::string named_kernel_text(const Findings& found) {
  std::string best;
  for (const auto& setting : settings_for(found.processor, {})) {
    best = setting.name == "OPENBLAS_CORETYPE" ? setting.value : best;
  }
  if (found.named_kernel.empty() || best.empty() || made_before_avx(found.kernel) ||
      ::strcasecmp(found.named_kernel.c_str(), best.c_str()) == 0 ||
      ::strcasecmp(found.named_kernel.c_str(), "Cooperlake") == 0) {
    return "";
  }
  return "your environment says OPENBLAS_CORETYPE=" + found.named_kernel +
         ", where this processor can run the " + best +
         " kernels: unset it unless you need the same bytes as another machine";
}

}  // namespace

std::vector<std::string> warnings(const Findings& found) {
  std::vector<std::string> texts;
  if (const auto text = slow_product_text(found); !text.empty()) {
    texts.push_back(text);
  }
  if (const auto text = named_kernel_text(found); !text.empty()) {
    texts.push_back(text);
  }
  if (!found.unset.empty()) {
    texts.push_back(
        "this process was not started by the program theseus, and its environment lacks " +
        assignments(found.unset) + "; set it before the process starts");
  }
  if (found.cores < found.processors) {
    texts.push_back(
        "the " + std::to_string(found.processors) + " processors are threads of " +
        std::to_string(found.cores) + (found.cores == 1 ? " core" : " cores") + ", so more than " +
        std::to_string(found.cores) + (found.cores == 1 ? " thread" : " threads") +
        " gain next to nothing");
  }
  if (found.bfloat16 > 0 && found.bfloat16 < found.float32) {
    texts.push_back(
        "products are slower in bfloat16 than in float32 (" + billions(found.bfloat16) +
        " against " + billions(found.float32) +
        " Gflop/s a core), so --dtype bfloat16 costs time and accuracy; it still saves memory");
  }
  if (found.openblas_has_own_threads) {
    texts.push_back(
        "this OpenBLAS has threads of its own, which fight with libtorch's; install "
        "libopenblas0-openmp, or choose it with update-alternatives");
  }
  return texts;
}

}  // namespace theseus::machine
