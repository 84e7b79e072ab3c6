#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "theseus/data/examples.h"

namespace theseus::data {

// Bytes with what keeps them in memory.
struct Bytes {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
};

// The file as it is, mapped, or unpacked when it is gzip. Throws InputError when that is damaged or
// unpacks to more than `most` bytes.
Bytes open_bytes(const std::filesystem::path& file, int64_t most);

// An image file each, with its path as name. Throws InputError when one is not there: a list that names
// what is not there would otherwise show only as images left out.
Examples examples_of_files(
    const std::vector<std::filesystem::path>& files, std::vector<int64_t> labels);

// Images of one size as plain 8-bit values, one after the other; grey ones have one channel.
struct PixelArray {
  Bytes values;
  int64_t count = 0;
  int64_t first = 0;  // where the first image's first value is, and how far it is to the next...
  int64_t step = 0;   // ... image
  int64_t row_step = 0;
  int64_t column_step = 0;
  int64_t channel_step = 0;  // 0: grey
  int64_t height = 0;
  int64_t width = 0;
};

// The images of all arrays, one after the other. Throws InternalError when one reaches beyond its bytes.
std::function<Image(int64_t)> images_of_arrays(std::vector<PixelArray> arrays);

// Decodes what lies in `parts[i]`; `names` are for messages.
std::function<Image(int64_t)> images_of_bytes(
    std::vector<Bytes> parts, std::vector<std::string> names);

}  // namespace theseus::data
