#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/data/image.h"

namespace theseus::data {

enum class Resample { kBilinear, kBicubic };
enum class Fit {
  kCrop,    // shorter side to `resize`, then the centre
  kSquash,  // both sides to their size, whatever the shape
};

// What a model's images go through: resize with antialiasing in 8 bits as Pillow does, crop, scale,
// normalise.
struct Preprocessing {
  int64_t height = 224;
  int64_t width = 224;
  int64_t resize = 224;  // of the shorter side, with Fit::kCrop
  Fit fit = Fit::kCrop;
  Resample resample = Resample::kBicubic;
  std::vector<double> mean = {0.5, 0.5, 0.5};
  std::vector<double> std = {0.5, 0.5, 0.5};
  std::string origin;  // the file and fields that said so, or "defaults of FAMILY"
};

// From the files beside the model: preprocessor_config.json, open_clip_config.json's preprocess_cfg or timm's config.json.
// `height` and `width` are what the model takes. Throws InputError when a file asks for what is not
// implemented.
Preprocessing find_preprocessing(
    const std::filesystem::path& directory, int64_t height, int64_t width);

at::Tensor preprocess(const Image& image, const Preprocessing& how);  // [3, height, width] float32

}  // namespace theseus::data
