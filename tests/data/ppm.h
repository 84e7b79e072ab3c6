#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/data/image.h"

namespace theseus::tests {

// An image of one row and two pixels: (red, 1, 2) and (3, 4, 5).
inline std::string ppm(int red) {
  std::string text = "P6\n2 1\n255\n";
  text.push_back(static_cast<char>(red));
  return text.append("\1\2\3\4\5");
}

inline std::vector<int> values(const data::Image& image) {
  const auto flat = image.pixels.flatten().contiguous();
  return {flat.data_ptr<uint8_t>(), flat.data_ptr<uint8_t>() + flat.numel()};
}

}  // namespace theseus::tests
