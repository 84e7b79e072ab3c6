#pragma once

#include <cstdint>

#include "theseus/data/image.h"

namespace theseus::data {

enum class Resample { kBilinear, kBicubic };  // bicubic with a = -0.5

// A rectangle of pixels.
struct Window {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// What Pillow's Image.resize gives: the filter widens when the image shrinks, columns first, 8 bits
// between the passes. Sizes must be positive.
Image resize(const Image& image, int64_t height, int64_t width, Resample how);

// The pixels of resize() that lie in `window`, without the work for the others. The window must lie in
// height x width.
Image resize(const Image& image, int64_t height, int64_t width, Resample how, const Window& window);

}  // namespace theseus::data
