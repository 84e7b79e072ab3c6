#include "theseus/base/device.h"

#include <gtest/gtest.h>
#include <torch/cuda.h>

#include "theseus/base/error.h"

#include "tests/support/expect_error.h"

namespace theseus {
namespace {

using tests::error_of;

TEST(ParseDevice, KnowsTheCpu) {
  EXPECT_EQ(parse_device("cpu"), c10::Device(c10::kCPU));
}

TEST(ParseDevice, RefusesOtherWords) {
  for (const char* text : {"", "CPU", "cpu:0", "gpu", "cudax", "mps"}) {
    const auto said = std::string("unknown device '") + text + "'; known: auto cpu cuda cuda:N";
    EXPECT_TRUE(error_of([&] { parse_device(text); }).starts_with(said)) << text;
  }
}

TEST(ParseDevice, NeverFallsBackToTheCpu) {
  if (torch::cuda::is_available()) {
    EXPECT_EQ(parse_device("cuda"), c10::Device(c10::kCUDA, 0));
    EXPECT_THROW(parse_device("cuda:999"), InputError);
  } else {
    for (const char* text : {"cuda", "cuda:0", "cuda:x"}) {
      EXPECT_NE(error_of([&] { parse_device(text); }).find("no CUDA device"), std::string::npos)
          << text;
    }
  }
}

TEST(ParseComputeDtype, KnowsThree) {
  EXPECT_EQ(parse_compute_dtype("float32"), c10::kFloat);
  EXPECT_EQ(parse_compute_dtype("bfloat16"), c10::kBFloat16);
  EXPECT_EQ(parse_compute_dtype("float16"), c10::kHalf);
  EXPECT_TRUE(error_of([] {
                parse_compute_dtype("float64");
              }).starts_with("unknown dtype 'float64'; known: float32 bfloat16 float16"));
}

}  // namespace
}  // namespace theseus
