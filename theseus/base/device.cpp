#include "theseus/base/device.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <torch/cuda.h>

#include "theseus/base/error.h"
#include "theseus/base/gpu.h"
#include "theseus/base/rates.h"
#include "theseus/base/units.h"
#include "theseus/machine/suggest.h"

namespace theseus {
namespace {

std::atomic<bool> pretended_fast = false;

}  // namespace

ChosenDevice choose_device(int64_t bytes) {
  constexpr int64_t kSpare = 2'000'000'000;  // CUDA's own, and what a job needs at the least
  const auto gpus = list_gpus();
  if (gpus.empty()) {
    return {c10::kCPU, ""};
  }
  const auto& best = *std::max_element(
      gpus.begin(), gpus.end(), [](const Gpu& a, const Gpu& b) { return a.free < b.free; });
  const c10::Device device(c10::kCUDA, static_cast<c10::DeviceIndex>(best.index));
  const auto name = c10::str(
      device, " (", best.name, ", ", bytes_text(best.free), " free of ", bytes_text(best.bytes),
      ")");
  if (best.free < bytes + kSpare) {
    return {
        c10::kCPU, c10::str(
                       "computing on the CPU: ", name, " has less free than the ",
                       bytes_text(bytes + kSpare), " that this takes")};
  }
  try {
    const auto factor = at::ones({2, 2}, at::TensorOptions(device).dtype(at::kFloat));
    require(at::mm(factor, factor).sum().item<float>() == 8, "a product is wrong");
  } catch (const std::exception& error) {
    const std::string reason = error.what();
    return {
        c10::kCPU, c10::str(
                       "computing on the CPU: ", name, " does not work (",
                       reason.substr(0, reason.find('\n')), ")")};
  }
  return {device, c10::str("computing on ", name)};
}

c10::Device parse_device(const std::string& text) {
  if (text == "auto") {
    return choose_device().device;
  }
  const bool cuda = text == "cuda" || text.starts_with("cuda:");
  require(
      cuda || text == "cpu", "unknown device '", text,
      "'; known: auto cpu cuda cuda:N, where cuda is a GPU");
  if (!cuda) {
    return c10::Device(c10::kCPU);
  }
  require(
      torch::cuda::is_available(), "device '", text,
      "' was asked for, but this libtorch finds no CUDA device; use cpu, or build against a "
      "libtorch with CUDA on a machine that has one");
  const auto digits = text.size() > 5 ? text.substr(5) : "0";
  const bool number =
      text == "cuda" || (text.size() > 5 && text.size() < 9 &&
                         digits.find_first_not_of("0123456789") == std::string::npos);
  require(number, "unknown device '", text, "'; known: auto cpu cuda cuda:N");
  const int index = std::stoi(digits);
  const auto count = torch::cuda::device_count();
  require(
      static_cast<size_t>(index) < static_cast<size_t>(count), "device '", text,
      "' was asked for; this machine has ", count, " CUDA devices");
  return c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index));
}

c10::Device cuda_device_of(int n) {
  const auto first = parse_device("cuda");
  const auto count = static_cast<int>(torch::cuda::device_count());
  return {first.type(), static_cast<c10::DeviceIndex>(n % count)};
}

bool multiplies_float64_fast(c10::Device device) {
  constexpr double kFast = 4;  // times as long: there is nothing between 2 and 16
  constexpr int64_t kFeatures = 1024;
  if (device.is_cpu()) {
    return pretended_fast;
  }
  static std::mutex mutex;
  static std::map<int, bool> measured;
  const std::lock_guard lock(mutex);
  if (const auto found = measured.find(device.index()); found != measured.end()) {
    return found->second;
  }
  double wide = std::numeric_limits<double>::infinity(), narrow = wide;
  // In turns, and the best of each: something may come between.
  for (int turn = 0; turn < 5; ++turn) {
    wide = std::min(wide, seconds_of_product(device, at::kDouble, kFeatures));
    narrow = std::min(narrow, seconds_of_product(device, at::kFloat, kFeatures));
  }
  return measured[device.index()] = wide < kFast * narrow;
}

c10::ScalarType dtype_of_products(c10::Device device) {
  return multiplies_float64_fast(device) ? c10::kDouble : c10::kFloat;
}

PretendFastFloat64::PretendFastFloat64() {
  pretended_fast = true;
}

PretendFastFloat64::~PretendFastFloat64() {
  pretended_fast = false;
}

c10::ScalarType parse_compute_dtype(const std::string& text, const std::string& more) {
  static const std::map<std::string, c10::ScalarType> known = {
      {"float32", c10::kFloat}, {"bfloat16", c10::kBFloat16}, {"float16", c10::kHalf}};
  const auto found = known.find(text);
  const auto words = "float32 bfloat16 float16" + (more.empty() ? "" : " " + more);
  require(
      found != known.end(), "unknown dtype '", text, "'; known: ", words,
      machine::did_you_mean(text, words));
  return found->second;
}

void respect_onednn_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    const char* value = std::getenv(name);
    const std::string_view limit = value == nullptr ? "" : value;
    if (limit.starts_with("SSE41") || limit.starts_with("AVX2") || limit == "AVX") {
      at::globalContext().setUserEnabledMkldnn(false);
    }
  }
}

Tf32::Tf32(bool on) : on_(on) {
  if (on_) {
    at::globalContext().setAllowTF32CuBLAS(true);
  }
}

Tf32::~Tf32() {
  if (on_) {
    at::globalContext().setAllowTF32CuBLAS(false);
  }
}

}  // namespace theseus
