#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace theseus {

struct Gpu {
  int index = 0;
  std::string name;   // as its maker calls it
  int64_t free = 0;   // bytes
  int64_t bytes = 0;  // in all
};

// Those that this libtorch can compute on, by index. Empty where there are none.
std::vector<Gpu> list_gpus();

// Free and all bytes of one; nothing when CUDA does not say.
std::optional<std::pair<int64_t, int64_t>> memory_of_gpu(int index);

}  // namespace theseus
