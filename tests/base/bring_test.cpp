#include "theseus/base/bring.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>

namespace theseus {
namespace {

TEST(Bring, CopiesEveryElement) {
  std::vector<c10::Device> devices = {c10::Device(c10::kCPU)};
  if (torch::cuda::is_available()) {
    devices.emplace_back(c10::kCUDA, 0);
  }
  const at::Tensor given[] = {
      at::randn({3, 2500, 700}),  // several pieces, the last one shorter
      at::randn({40, 30}).t(), at::arange(7, at::kLong), at::randn({0, 5}).to(at::kBFloat16)};
  for (const auto device : devices) {
    for (const auto& tensor : given) {
      const auto there = bring(tensor, device);
      EXPECT_EQ(there.device(), device);
      EXPECT_EQ(there.scalar_type(), tensor.scalar_type());
      EXPECT_TRUE(at::equal(there.cpu(), tensor));
      EXPECT_TRUE(tensor.numel() == 0 || there.data_ptr() != tensor.data_ptr());
    }
  }
}

}  // namespace
}  // namespace theseus
