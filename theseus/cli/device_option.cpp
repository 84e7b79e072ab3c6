#include "theseus/cli/device_option.h"

#include <cstdio>

#include "theseus/base/device.h"
#include "theseus/cluster/place.h"

namespace theseus::cli {
void add_device(CLI::App& app, std::string& device) {
  device = "auto";
  app.add_option(
         "--device", device,
         "cpu, cuda, cuda:N; auto: a GPU that works and has room, else the processor")
      ->capture_default_str();
}

c10::Device device_of(const std::string& text, bool quiet, int64_t bytes) {
  if (text != "auto") {
    return parse_device(text);
  }
  const auto chosen = choose_device(bytes);
  if (!chosen.why.empty() && !quiet && cluster::find_place().first()) {
    std::fprintf(stderr, "%s\n", chosen.why.c_str());
  }
  return chosen.device;
}

}  // namespace theseus::cli
