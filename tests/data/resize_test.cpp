#include "theseus/data/resize.h"

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "theseus/base/error.h"

#include "tests/support/images.h"

namespace theseus::data {
namespace {

constexpr auto kBoth = {Resample::kBilinear, Resample::kBicubic};

Image source(const std::string& name) {
  return tests::golden_image("source/" + name);
}

// Against Pillow 9.4 all cases were equal, up and down, 1 x 1 and 150 x 3: largest and mean difference 0.
TEST(Resize, IsPillowsToTheBit) {
  const auto names = tests::golden_names("resize/");
  ASSERT_EQ(names.size(), 32);
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    const auto words = tests::words(name);
    const auto expected = tests::golden_image(name);
    const auto how = words[3] == "bicubic" ? Resample::kBicubic : Resample::kBilinear;
    const auto found =
        resize(source(words[1]), expected.pixels.size(0), expected.pixels.size(1), how);
    const auto apart = tests::difference(found, expected);
    EXPECT_EQ(apart.largest, 0);
    EXPECT_EQ(apart.mean, 0);
  }
}

TEST(Resize, SameSizeIsTheSameImage) {
  for (const char* name : {"photo", "tall", "wide", "one", "checks"}) {
    const auto image = source(name);
    for (const auto how : kBoth) {
      const auto found = resize(image, image.pixels.size(0), image.pixels.size(1), how);
      EXPECT_TRUE(at::equal(found.pixels, image.pixels)) << name;
    }
  }
}

TEST(Resize, OneColourStays) {
  for (const int64_t value : {0, 1, 127, 254, 255}) {
    const Image image{at::full({23, 17, 3}, value, at::kByte)};
    for (const auto how : kBoth) {
      for (const int64_t size : {1, 5, 17, 40}) {
        EXPECT_TRUE(resize(image, size, size + 3, how).pixels.eq(value).all().item<bool>());
      }
    }
  }
}

TEST(Resize, AWindowIsThatPartOfTheWhole) {
  const auto image = source("photo");
  for (const auto how : kBoth) {
    for (const int64_t size : {13, 29, 64}) {
      const auto whole = resize(image, size, size + 5, how);
      for (const Window& window : std::vector<Window>{
               {0, 0, 1, 1},
               {size - 1, size + 4, 1, 1},
               {2, 3, size - 4, size - 6},
               {0, 7, size, 2}}) {
        const auto part = resize(image, size, size + 5, how, window);
        const auto expected = whole.pixels.slice(0, window.top, window.top + window.height)
                                  .slice(1, window.left, window.left + window.width);
        EXPECT_TRUE(at::equal(part.pixels, expected));
      }
    }
  }
}

// A row of a million pixels: sums of many small weights, and coordinates far beyond 16 bits.
TEST(Resize, LongRows) {
  const Image image{
      at::arange(1'000'000).remainder(256).to(at::kByte).view({1, -1, 1}).repeat({1, 1, 3})};
  for (const auto how : kBoth) {
    const auto small = resize(image, 1, 5, how).pixels.to(at::kInt);
    EXPECT_TRUE((small - 127).abs().le(1).all().item<bool>()) << small;
    const auto part = resize(image, 224, 224'000'000, how, {0, 223'999'000, 1, 3});
    EXPECT_EQ(part.pixels.size(1), 3);
  }
}

TEST(Resize, AWindowOutsideIsOurMistake) {
  const auto image = source("one");
  EXPECT_THROW(resize(image, 4, 4, Resample::kBicubic, {0, 1, 4, 4}), InternalError);
  EXPECT_THROW(resize(image, 4, 0, Resample::kBicubic), InternalError);
}

}  // namespace
}  // namespace theseus::data
