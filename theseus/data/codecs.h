#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "theseus/data/image.h"

namespace theseus::data {

// One decoder per format behind decode_image(). All throw InputError that begins with the name.
Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name);
Image decode_png(std::span<const std::byte> bytes, const std::string& name);
Image decode_pnm(std::span<const std::byte> bytes, const std::string& name);

// Memory for an image, not filled. Throws InputError for none and for more than kMostPixels.
Image new_image(int64_t height, int64_t width, const std::string& name);

[[noreturn]] void fail_to_decode(
    const std::string& name, const char* format, const std::string& why);

}  // namespace theseus::data
