#include "theseus/base/gpu.h"

#include <array>
#include <dlfcn.h>

#include <c10/core/DeviceGuard.h>
#include <torch/cuda.h>

// There where libtorch was built with CUDA.
extern "C" int cudaMemGetInfo(size_t* free, size_t* all) __attribute__((weak));

namespace theseus {
namespace {

// From the driver, whose interface is older than any libtorch and stays as it is.
std::string name_from_driver(int index) {
  void* driver = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  const auto get =
      driver == nullptr
          ? nullptr
          : reinterpret_cast<int (*)(char*, int, int)>(::dlsym(driver, "cuDeviceGetName"));
  std::array<char, 256> name = {};
  return get != nullptr && get(name.data(), name.size() - 1, index) == 0 ? name.data() : "GPU";
}

}  // namespace

std::optional<std::pair<int64_t, int64_t>> memory_of_gpu(int index) {
  size_t free = 0, all = 0;
  const c10::DeviceGuard guard(c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)));
  if (cudaMemGetInfo == nullptr || cudaMemGetInfo(&free, &all) != 0) {
    return std::nullopt;
  }
  return std::pair(static_cast<int64_t>(free), static_cast<int64_t>(all));
}

std::vector<Gpu> list_gpus() {
  std::vector<Gpu> gpus;
  const int count = torch::cuda::is_available() ? static_cast<int>(torch::cuda::device_count()) : 0;
  for (int i = 0; i < count; ++i) {
    const auto [free, bytes] = memory_of_gpu(i).value_or(std::pair<int64_t, int64_t>(0, 0));
    gpus.push_back({.index = i, .name = name_from_driver(i), .free = free, .bytes = bytes});
  }
  return gpus;
}

}  // namespace theseus
