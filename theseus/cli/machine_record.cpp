#include "theseus/cli/machine_record.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <sys/utsname.h>
#include <unistd.h>

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/version.h>

#include "theseus/base/device.h"
#include "theseus/base/gpu.h"
#include "theseus/base/rates.h"
#include "theseus/base/units.h"
#include "theseus/checkpoint/tensor_file.h"
#include "theseus/machine/cores.h"
#include "theseus/machine/findings.h"
#include "theseus/model/family.h"

namespace theseus::cli {
namespace {

using nlohmann::ordered_json;

// The linear algebra libraries this process really loaded, whatever was linked.
std::set<std::string> loaded_libraries() {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto path = line.substr(std::min(line.size(), line.find('/')));
    const auto name = std::filesystem::path(path).filename().string();
    for (const char* word :
         {"blas", "mkl", "dnnl", "libtorch_cpu", "libgomp", "libiomp", "libcudart"}) {
      if (name.find(word) != std::string::npos) {
        found.insert(path);
      }
    }
  }
  return found;
}

// Of OpenBLAS, where that computes the products.
std::string kernel_in_use() {
  const auto get =
      reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  return get == nullptr ? "" : get();
}

// oneDNN's name for the best it will use; a libtorch that hides its oneDNN answers nothing.
std::string onednn_limit() {
  const auto effective =
      reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "dnnl_get_effective_cpu_isa"));
  const auto name =
      reinterpret_cast<const char* (*)(int)>(::dlsym(RTLD_DEFAULT, "dnnl_cpu_isa2str"));
  return effective == nullptr || name == nullptr ? "" : name(effective());
}

// "AVX2": what libtorch's own kernels use.
std::string libtorch_capability() {
  constexpr std::string_view kMark = "CPU capability usage: ";
  const auto config = at::show_config();
  const auto place = config.find(kMark);
  return place == std::string::npos
             ? "unknown extensions"
             : config.substr(place + kMark.size(), config.find('\n', place) - place - kMark.size());
}

bool set_by_theseus(const std::string& name) {
  const auto ours = " " + machine::look_up("THESEUS_SET").value_or("") + " ";
  return ours.find(" " + name + " ") != std::string::npos;
}

machine::Findings find_out() {
  respect_onednn_limit();
  const auto processors = machine::allowed_processors();
  machine::Findings found = {
      .processor = machine::describe(machine::read_cpuid()),
      .processors = static_cast<int>(processors.size()),
      .cores = machine::count_cores(processors),
      .clock = machine::clock_rate(),
      .kernel = kernel_in_use()};
  found.unset = machine::missing(machine::settings_here());
  if (!set_by_theseus("OPENBLAS_CORETYPE")) {
    found.named_kernel = machine::look_up("OPENBLAS_CORETYPE").value_or("");
  }
  for (const auto& library : loaded_libraries()) {
    found.openblas_has_own_threads |= library.find("openblas-pthread") != std::string::npos;
  }
  found.float32 = product_rate_of_one_thread(at::kFloat);
  found.float64 = product_rate_of_one_thread(at::kDouble);
  found.bfloat16 = product_rate_of_one_thread(at::kBFloat16);
  return found;
}

ordered_json settings_record() {
  auto settings = ordered_json::array();
  for (const auto& setting : machine::settings_here()) {
    const auto value = machine::look_up(setting.name);
    const bool yields = !value && !setting.yields.empty() && machine::look_up(setting.yields);
    settings.push_back(
        {{"name", setting.name},
         {"value", value ? ordered_json(*value) : ordered_json()},
         {"set_by", set_by_theseus(setting.name) ? "theseus"
                    : value || yields            ? "you"
                                                 : "nobody"},
         {"chosen_here", setting.value},
         {"why", setting.why}});
  }
  return settings;
}

ordered_json gpus_record() {
  auto gpus = ordered_json::array();
  for (const auto& gpu : list_gpus()) {
    const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(gpu.index));
    gpus.push_back(
        {{"device", fmt::format("cuda:{}", gpu.index)},
         {"name", gpu.name},
         {"free_bytes", gpu.free},
         {"bytes", gpu.bytes},
         {"float32", product_rate(device, at::kFloat)},
         {"float64", product_rate(device, at::kDouble)},
         {"bfloat16", product_rate(device, at::kBFloat16)}});
  }
  return gpus;
}

int64_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    int64_t kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") {
      return kibibytes * 1024;
    }
  }
  return -1;
}

ordered_json disk_record() {
  std::error_code error;
  const auto here = std::filesystem::current_path(error);
  const auto space = std::filesystem::space(here, error);
  return {
      {"directory", here.string()},
      {"free_bytes", error ? -1 : static_cast<int64_t>(space.available)}};
}

template <class T>
std::string names(std::span<const Plugin<T>> table) {
  std::string result;
  for (const auto& plugin : table) {
    result.append(result.empty() ? "" : " ").append(plugin.name);
  }
  return result;
}

std::string rates_text(const ordered_json& rates) {
  return fmt::format(
      "float32 {:.0f}, float64 {:.0f}, bfloat16 {:.0f} Gflop/s",
      rates.at("float32").get<double>() / 1e9, rates.at("float64").get<double>() / 1e9,
      rates.at("bfloat16").get<double>() / 1e9);
}

}  // namespace

ordered_json machine_record() {
  utsname system = {};
  ::uname(&system);
  const auto found = find_out();
  const auto& processor = found.processor;
  const auto page = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  ordered_json record = {
      {"theseus", THESEUS_VERSION},
      {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
      {"processor",
       {{"name", processor.name},
        {"vendor", processor.vendor},
        {"family", processor.family},
        {"model", processor.model},
        {"extensions", machine::extensions_text(processor)},
        {"processors", found.processors},
        {"cores", found.cores},
        {"clock_hz", found.clock}}},
      {"libtorch", TORCH_VERSION},
      {"libtorch_uses", libtorch_capability()},
      {"threads", at::get_num_threads()},
      {"openblas_kernel", found.kernel},
      {"onednn_limit", onednn_limit()},
      {"settings", settings_record()},
      {"rates_of_a_core",
       {{"float32", found.float32}, {"float64", found.float64}, {"bfloat16", found.bfloat16}}},
      {"gpus", gpus_record()},
      {"memory_bytes", page * static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES))},
      {"available_bytes", available_bytes()},
      {"disk", disk_record()},
      {"families", names(model::all_families())},
      {"formats", names(checkpoint::all_formats())},
      {"libraries", loaded_libraries()},
      {"warnings", machine::warnings(found)}};
  return record;
}

std::string machine_text(const ordered_json& record) {
  std::string text;
  const auto line = [&](std::string_view what, const std::string& value) {
    text += fmt::format("{:<12} {}\n", what, value);
  };
  const auto word = [&](const char* key) { return record.at(key).get<std::string>(); };
  const auto bytes = [&](const ordered_json& count) { return bytes_text(count.get<int64_t>()); };
  const auto& processor = record.at("processor");
  line("theseus", word("theseus"));
  line("system", word("system"));
  line(
      "processor", fmt::format(
                       "{} ({}, family {}, model {})", processor.at("name").get<std::string>(),
                       processor.at("vendor").get<std::string>(), processor.at("family").get<int>(),
                       processor.at("model").get<int>()));
  line("extensions", processor.at("extensions").get<std::string>());
  line(
      "threads", fmt::format(
                     "{}, on {} processors of {} cores", record.at("threads").get<int>(),
                     processor.at("processors").get<int>(), processor.at("cores").get<int>()));
  line("libtorch", fmt::format("{}, which uses {}", word("libtorch"), word("libtorch_uses")));
  line(
      "blas", word("openblas_kernel").empty()
                  ? "not OpenBLAS"
                  : "OpenBLAS, " + word("openblas_kernel") + " kernels");
  if (!word("onednn_limit").empty()) {
    line("oneDNN", "up to " + word("onednn_limit"));
  }
  line("a core", rates_text(record.at("rates_of_a_core")));
  for (const auto& setting : record.at("settings")) {
    const auto name = setting.at("name").get<std::string>();
    const bool set = !setting.at("value").is_null();
    line(
        "setting", fmt::format(
                       "{}{}: {}", name,
                       set ? fmt::format(
                                 "={}, set by {}", setting.at("value").get<std::string>(),
                                 setting.at("set_by").get<std::string>())
                           : " is not set",
                       setting.at("why").get<std::string>()));
  }
  for (const auto& gpu : record.at("gpus")) {
    line(
        gpu.at("device").get<std::string>(),
        fmt::format(
            "{}, {} free of {}; {}", gpu.at("name").get<std::string>(), bytes(gpu.at("free_bytes")),
            bytes(gpu.at("bytes")), rates_text(gpu)));
  }
  if (record.at("gpus").empty()) {
    line("gpu", "this libtorch finds none");
  }
  line(
      "memory", fmt::format(
                    "{} in all, {} available", bytes(record.at("memory_bytes")),
                    bytes(record.at("available_bytes"))));
  line(
      "disk", fmt::format(
                  "{} free at {}", bytes(record.at("disk").at("free_bytes")),
                  record.at("disk").at("directory").get<std::string>()));
  line("families", word("families"));
  line("formats", word("formats"));
  for (const auto& library : record.at("libraries")) {
    line("loaded", library.get<std::string>());
  }
  for (const auto& warning : record.at("warnings")) {
    line("warning", warning.get<std::string>());
  }
  return text;
}

}  // namespace theseus::cli
