#include "theseus/base/machine_notes.h"

#include <map>
#include <mutex>

#include <c10/util/StringUtil.h>

#include "theseus/base/rates.h"
#include "theseus/machine/environment.h"

namespace theseus {

bool slower_than_float32(c10::ScalarType dtype) {
  constexpr double kClearly = 0.9;
  if (dtype == c10::kFloat) {
    return false;
  }
  static std::mutex mutex;
  static std::map<c10::ScalarType, bool> measured;
  const std::lock_guard lock(mutex);
  if (const auto found = measured.find(dtype); found != measured.end()) {
    return found->second;
  }
  const auto half = product_rate_of_one_thread(dtype);
  return measured[dtype] = half < kClearly * product_rate_of_one_thread(c10::kFloat);
}

std::vector<std::string> machine_notes(c10::Device device, c10::ScalarType dtype) {
  std::vector<std::string> notes;
  const auto unset = machine::missing(machine::settings_here());
  if (!unset.empty()) {
    notes.push_back(
        "this process was not started by the program theseus and may compute slower than it could: "
        "set " +
        machine::assignments(unset) + " before it starts");
  }
  if (device.is_cpu() && slower_than_float32(dtype)) {
    notes.push_back(c10::str(
        "products take longer in half precision than in float32 on this processor, so --dtype ",
        dtype == c10::kHalf ? "float16" : "bfloat16",
        " costs time and accuracy here; it still saves memory"));
  }
  return notes;
}

}  // namespace theseus
