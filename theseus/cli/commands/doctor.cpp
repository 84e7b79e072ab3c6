// theseus doctor: what a bug report needs.

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/utsname.h>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <torch/cuda.h>
#include <torch/version.h>

#include "theseus/base/units.h"
#include "theseus/checkpoint/tensor_file.h"
#include "theseus/cli/command.h"
#include "theseus/model/family.h"

namespace theseus::cli::commands {
namespace {

void print(std::string_view what, const std::string& value) {
  fmt::print("{:<12} {}\n", what, value);
}

// The linear algebra libraries this process really loaded, whatever was linked.
std::set<std::string> loaded_libraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.substr(std::min(line.size(), line.find('/')));
    const auto name = std::filesystem::path(path).filename().string();
    for (const char* word : {"blas", "mkl", "libtorch_cpu", "libgomp", "libiomp", "libcudart"}) {
      if (name.find(word) != std::string::npos) {
        found.insert(path);
      }
    }
  }
  return found;
}

std::string memory() {
  const auto page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  const auto all = page * static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES));
  std::ifstream file("/proc/meminfo");
  std::string available = "unknown";
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") {
      available = bytes_text(kibibytes * 1024);
    }
  }
  return fmt::format("{} in all, {} available", bytes_text(all), available);
}

std::string disk(const std::filesystem::path& path) {
  std::error_code error;
  const auto space = std::filesystem::space(path, error);
  return error ? error.message()
               : fmt::format(
                     "{} free of {} at {}", bytes_text(static_cast<int64_t>(space.available)),
                     bytes_text(static_cast<int64_t>(space.capacity)), path.string());
}

template <class T>
std::string names(std::span<const Plugin<T>> table) {
  std::string result;
  for (const auto& plugin : table) {
    result.append(result.empty() ? "" : " ").append(plugin.name);
  }
  return result;
}

int run() {
  utsname system = {};
  ::uname(&system);
  print("theseus", THESEUS_VERSION);
  print("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  print("libtorch", TORCH_VERSION);
  print(
      "threads",
      fmt::format("{} of {} processors", at::get_num_threads(), ::sysconf(_SC_NPROCESSORS_ONLN)));
  print(
      "devices", torch::cuda::is_available()
                     ? fmt::format("cpu, {} CUDA", torch::cuda::device_count())
                     : "cpu (this libtorch finds no CUDA device)");
  print("memory", memory());
  print("disk", disk(std::filesystem::current_path()));
  print("families", names(model::all_families()));
  print("formats", names(checkpoint::all_formats()));
  for (const auto& library : loaded_libraries()) {
    const bool blas =
        library.find("blas") != std::string::npos || library.find("mkl") != std::string::npos;
    print(blas ? "blas" : "loaded", library);
    if (library.find("openblas-pthread") != std::string::npos) {
      print(
          "warning",
          "this OpenBLAS has threads of its own, which fight with libtorch's; "
          "libopenblas0-openmp does not");
    }
  }
  fmt::print("\n{}", at::show_config());
  return kDone;
}

std::function<int()> add(CLI::App& /*app*/) {
  return run;
}

}  // namespace

const Command& doctor() {
  static const Command command = {.help = "print what a bug report needs", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
