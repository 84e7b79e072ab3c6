#include "theseus/train/memory.h"

#include <gtest/gtest.h>

namespace theseus::train {
namespace {

TEST(TrainingMemory, CountsLeafGradientAndTwoMomentsInFloat32) {
  EXPECT_EQ(bytes_a_weight(at::kFloat, /*low_rank=*/false), 4 + 16);
  EXPECT_EQ(bytes_a_weight(at::kBFloat16, /*low_rank=*/false), 2 + 16);
  EXPECT_EQ(bytes_a_weight(at::kFloat, /*low_rank=*/true), 4);
  EXPECT_EQ(bytes_a_weight(at::kHalf, /*low_rank=*/true), 2);
}

}  // namespace
}  // namespace theseus::train
