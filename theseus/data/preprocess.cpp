#include "theseus/data/preprocess.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/data/preprocess_files.h"

namespace theseus::data {
namespace {

Size resized_size(Size image, const Preprocessing& how) {
  if (how.fit == Fit::kSquash) {
    return {how.squash_height, how.squash_width};
  }
  if (how.resize == 0) {
    return image;
  }
  const auto [shorter, longer] = std::minmax(image.height, image.width);
  // In floating point and cut off, as torchvision has it.
  const auto stretched =
      static_cast<int64_t>(static_cast<double>(how.resize * longer) / static_cast<double>(shorter));
  return image.width <= image.height ? Size{stretched, how.resize} : Size{how.resize, stretched};
}

// Along one side: `size` pixels from `begin` of what was resized, `before` pixels of black in front.
struct Span {
  int64_t begin = 0;
  int64_t size = 0;
  int64_t before = 0;
};

Span centre(int64_t have, int64_t want) {
  if (have < want) {
    return {0, have, (want - have) / 2};
  }
  // A half goes to the even neighbour, as in Python's round().
  const auto begin = std::nearbyint(static_cast<double>(have - want) / 2);
  return {static_cast<int64_t>(begin), want, 0};
}

// What each of the 256 values becomes.
using Table = std::array<float, 256>;

Table table_of(const Preprocessing& how, size_t channel) {
  const auto mean = static_cast<float>(how.mean[channel]);
  const auto deviation = static_cast<float>(how.std[channel]);
  Table table;
  for (size_t value = 0; value < table.size(); ++value) {
    table[value] = (static_cast<float>(static_cast<double>(value) * how.scale) - mean) / deviation;
  }
  return table;
}

// Interleaved bytes to planes of numbers, one row at a time so that the bytes stay in the cache.
void normalise(
    const Image& part, const Preprocessing& how, Span rows, Span columns, std::span<float> out) {
  std::array<Table, kChannels> tables;
  for (int64_t c = 0; c < kChannels; ++c) {
    tables[c] = table_of(how, static_cast<size_t>(c));
    if (rows.size < how.height || columns.size < how.width) {
      std::fill_n(out.data() + c * how.height * how.width, how.height * how.width, tables[c][0]);
    }
  }
  const auto* in = part.pixels.data_ptr<uint8_t>();
  for (int64_t y = 0; y < rows.size; ++y) {
    float* const row = out.data() + (y + rows.before) * how.width + columns.before;
    for (int64_t c = 0; c < kChannels; ++c) {
      const auto& table = tables[c];
      float* const plane = row + c * how.height * how.width;
      for (int64_t x = 0; x < columns.size; ++x) {
        plane[x] = table[in[x * kChannels + c]];
      }
    }
    in += columns.size * kChannels;
  }
}

}  // namespace

void preprocess(const Image& image, const Preprocessing& how, std::span<float> out) {
  require<InternalError>(
      static_cast<int64_t>(out.size()) == kChannels * how.height * how.width,
      "preprocess: room for ", out.size(), " numbers, not ", kChannels, " x ", how.height, " x ",
      how.width);
  const auto size = resized_size({image.pixels.size(0), image.pixels.size(1)}, how);
  const auto rows = centre(size.height, how.height);
  const auto columns = centre(size.width, how.width);
  const auto part = resize(
      image, size.height, size.width, how.resample,
      {rows.begin, columns.begin, rows.size, columns.size});
  normalise(part, how, rows, columns, out);
}

at::Tensor preprocess(const Image& image, const Preprocessing& how) {
  auto result = at::empty({kChannels, how.height, how.width}, at::kFloat);
  preprocess(image, how, {result.data_ptr<float>(), static_cast<size_t>(result.numel())});
  return result;
}

}  // namespace theseus::data
