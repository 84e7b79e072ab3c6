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

// JPEG, PNG or PPM/PGM; grey becomes three equal channels, and alpha is dropped, as Pillow's
// convert("RGB") does. `name` is for messages. Throws InputError.
Image decode_image(std::span<const std::byte> bytes, const std::string& name);

}  // namespace theseus::data
