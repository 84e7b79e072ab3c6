#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/data/image.h"

namespace theseus::tests {

// A file of tests/fixtures/data/images (written by tools/goldens/images.py).
std::filesystem::path image_path(const std::string& name);
std::string image_bytes(const std::string& name);
data::Image decode(const std::string& bytes, const std::string& name);

// The golden tensors whose names begin with `prefix`, and one of them as an image.
std::vector<std::string> golden_names(const std::string& prefix);
data::Image golden_image(const std::string& name);
std::vector<std::string> words(const std::string& name);  // between the slashes

// How two images of one size differ, in steps of 8 bits.
struct Difference {
  int largest = 0;
  double mean = 0;
};
Difference difference(const data::Image& found, const data::Image& expected);

}  // namespace theseus::tests
