#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "theseus/data/image.h"
#include "theseus/data/resize.h"

namespace theseus::data {

enum class Fit {
  kCrop,    // the shape stays: shorter side to `resize`, then the centre
  kSquash,  // to squash_height x squash_width, whatever the shape, then the centre
};

// What a model's images go through: resize with antialiasing in 8 bits as Pillow does, take the centre
// as torchvision does (what is missing is black), then (scale * value - mean) / std.
struct Preprocessing {
  int64_t height = 224;  // of the result
  int64_t width = 224;
  Fit fit = Fit::kCrop;
  int64_t resize = 224;  // of the shorter side, with Fit::kCrop; 0: not resized
  int64_t squash_height = 224;
  int64_t squash_width = 224;
  Resample resample = Resample::kBicubic;
  double scale = 1.0 / 255;
  std::array<double, 3> mean = {0.5, 0.5, 0.5};
  std::array<double, 3> std = {0.5, 0.5, 0.5};
  std::string origin;  // the file that said so, or "defaults of FAMILY"
};

// From the files beside the model: for `openclip` open_clip_config.json's preprocess_cfg, for `timm_vit`
// config.json's pretrained_cfg, for other families and where these say nothing preprocessor_config.json,
// and without that the family's defaults. `height` and `width` are what the model takes; where a file
// gives no size it is theirs. Throws InputError when a file asks for another size or for what is not
// implemented.
Preprocessing find_preprocessing(
    const std::filesystem::path& directory, std::string_view family, int64_t height, int64_t width);

at::Tensor preprocess(const Image& image, const Preprocessing& how);  // [3, height, width] float32
// The same into `out`, which has room for just that.
void preprocess(const Image& image, const Preprocessing& how, std::span<float> out);

}  // namespace theseus::data
