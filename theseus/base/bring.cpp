#include "theseus/base/bring.h"

#include <algorithm>

#include <ATen/ATen.h>

namespace theseus {
namespace {

// Pinned memory is dear to get, and kept by libtorch for the next time in pieces of this size or less.
constexpr int64_t kPiece = int64_t{8} << 20;

}  // namespace

at::Tensor bring(const at::Tensor& tensor, c10::Device device) {
  if (tensor.is_cpu() == device.is_cpu() || tensor.numel() == 0) {
    return tensor.to(device, tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
  }
  const auto from = tensor.contiguous().view({-1});
  auto result = at::empty(tensor.sizes(), tensor.options().device(device));
  auto to = result.view({-1});
  const auto at_a_time = std::max<int64_t>(kPiece / static_cast<int64_t>(tensor.element_size()), 1);
  for (int64_t first = 0; first < from.numel(); first += at_a_time) {
    const auto count = std::min(at_a_time, from.numel() - first);
    auto pinned = at::empty({count}, from.options().device(at::kCPU).pinned_memory(true));
    pinned.copy_(from.narrow(0, first, count));
    to.narrow(0, first, count).copy_(pinned, /*non_blocking=*/true);
  }
  return result;
}

}  // namespace theseus
