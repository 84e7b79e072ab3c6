#include <gtest/gtest.h>

#include "theseus/checkpoint/tensor_file.h"

namespace theseus::checkpoint {
namespace {

TEST(TensorInfo, CountsElements) {
  TensorInfo info;
  EXPECT_EQ(info.elements(), 1);  // a scalar
  info.shape = {2, 3, 4};
  EXPECT_EQ(info.elements(), 24);
  info.shape = {2, 0};
  EXPECT_EQ(info.elements(), 0);
}

}  // namespace
}  // namespace theseus::checkpoint
