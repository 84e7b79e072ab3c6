#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "theseus/base/json.h"
#include "theseus/data/preprocess.h"

namespace theseus::data {

// What find_preprocessing() reads: three libraries have three ways to say the same. Where a file leaves a
// setting out, the library that wrote it has a default, which is taken here too.

struct Size {
  int64_t height = 0;
  int64_t width = 0;

  bool operator==(const Size&) const = default;
};

using Triple = std::array<double, 3>;

inline constexpr Triple kHalf = {0.5, 0.5, 0.5};
inline constexpr Triple kClipMean = {0.48145466, 0.4578275, 0.40821073};
inline constexpr Triple kClipStd = {0.26862954, 0.26130258, 0.27577711};

// Each takes the object that holds the settings, and throws InputError for what is not implemented and
// for another size than the model's.
Preprocessing from_transformers(const Json& json, const Size& model);
Preprocessing from_openclip(const Json& json, const Size& model);
Preprocessing from_timm(const Json& json, const Size& model);

// For these three. Images of the model's size: the shorter side to it, then the centre.
Preprocessing start_for(const Size& model);
void squash_to(const Size& size, Preprocessing& result);
// Replaces what the file gives of the mean and the std, which have these keys.
void read_statistics(
    const Json& json, std::string_view mean, std::string_view std, Preprocessing& result);
Resample resample_named(const Json& json, std::string_view key);
// floor(size / share), as timm enlarges what is cropped.
int64_t enlarged(int64_t size, double share, const std::string& where);

int64_t checked_size(const std::string& where, int64_t size);
void expect_size(const std::string& where, const Size& found, const Size& model);
std::string text_of(const Size& size);

}  // namespace theseus::data
