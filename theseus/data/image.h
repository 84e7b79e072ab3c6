#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

namespace theseus::data {

// Red, green and blue of every pixel, 8 bits each: [height, width, 3] uint8, contiguous.
struct Image {
  at::Tensor pixels;
};
inline constexpr int64_t kChannels = 3;

// Larger images are refused before their pixels get memory.
inline constexpr int64_t kMostPixels = 200'000'000;
inline constexpr int64_t kMostSide = 1'000'000;

// JPEG, PNG or PBM/PGM/PPM, told by the first bytes. What is not RGB becomes it as with Pillow's
// convert("RGB"): grey in three equal channels, alpha dropped, CMYK as Adobe writes it, 16 bits cut to 8
// (of colours to the upper ones, of grey to at most 255). Orientation tags are not followed.
// `name` is for messages. Throws InputError for what is corrupt, cut short, too large or of another format.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);

}  // namespace theseus::data
