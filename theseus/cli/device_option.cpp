#include "theseus/cli/device_option.h"

#include <cstdio>

#include "theseus/base/device.h"
#include "theseus/cluster/place.h"

namespace theseus::cli {
namespace {

// Bytes of the weights, as far as they can be told without opening them.
int64_t bytes_below(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    return static_cast<int64_t>(std::filesystem::file_size(path, error));
  }
  int64_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    const auto kind = entry.path().extension();
    if (kind == ".safetensors" || kind == ".bin" || kind == ".pt" || kind == ".pth") {
      bytes += static_cast<int64_t>(entry.file_size(error));
    }
  }
  return bytes;
}

}  // namespace

void add_device(CLI::App& app, std::string& device) {
  device = "auto";
  app.add_option(
         "--device", device,
         "cpu, cuda, cuda:N; auto: a GPU that works and has room, else the processor")
      ->capture_default_str();
}

c10::Device device_of(
    const std::string& text, bool quiet, const std::filesystem::path& model, int64_t copies) {
  if (text != "auto") {
    return parse_device(text);
  }
  const auto chosen = choose_device(model.empty() ? 0 : copies * bytes_below(model));
  if (!chosen.why.empty() && !quiet && cluster::find_place().first()) {
    std::fprintf(stderr, "%s\n", chosen.why.c_str());
  }
  return chosen.device;
}

}  // namespace theseus::cli
