// Output pixel i of m has its centre at c = (i + 1/2) n/m in the n input pixels. It is
//
//   out[i] = sum_j w_j in[j] / sum_j w_j,   w_j = f((j + 1/2 - c) / s),   s = max(n/m, 1)
//
// over the j within the filter's support times s. Weights are rounded to kPrecision bits behind the point
// and sums to 8 bits after each of the two passes, so results are whole numbers that no compiler or
// machine changes.

#include "theseus/data/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::data {
namespace {

// 8 bits of pixel, 22 of weight, 2 spare: the weights of a bicubic filter sum to more than one in
// magnitude.
constexpr int kPrecision = 32 - 8 - 2;
// SSE2 multiplies 16 bits: weight = high * 2^kLowBits + low.
constexpr int kLowBits = 11;
// The kernel reads 8 bytes where it needs 3 or 6.
constexpr int64_t kReadAhead = 8;

double bilinear(double x) {
  x = std::abs(x);
  return x < 1 ? 1 - x : 0;
}

double bicubic(double x) {
  x = std::abs(x);
  if (x < 1) {
    return (1.5 * x - 2.5) * x * x + 1;
  }
  return x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
}

// The input pixels of one output pixel: `count` from `first`, with weights from `weight` on.
struct Taps {
  int64_t first = 0;
  int64_t count = 0;
  int64_t weight = 0;
};

// Two neighbouring weights, split for the kernel: each int32 holds the pair's 16-bit parts.
struct WeightPair {
  int32_t high = 0;
  int32_t low = 0;
};

int32_t two_halves(int32_t first, int32_t second) {
  return static_cast<int32_t>(
      (static_cast<uint32_t>(first) & 0xffffU) | (static_cast<uint32_t>(second) << 16U));
}

class Axis {
 public:
  // The `size` outputs from `begin` on, of an axis that goes from `in` to `out` pixels.
  Axis(int64_t in, int64_t out, int64_t begin, int64_t size, Resample how) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    for (int64_t i = begin; i < begin + size; ++i) {
      add((static_cast<double>(i) + 0.5) * scale, std::max(scale, 1.0), in, how);
    }
  }

  const std::vector<Taps>& taps() const { return taps_; }
  const WeightPair* pairs(const Taps& taps) const { return pairs_.data() + taps.weight; }
  int64_t first() const { return taps_.front().first; }
  int64_t end() const { return taps_.back().first + taps_.back().count; }

 private:
  void add(double center, double widening, int64_t in, Resample how) {
    const auto filter = how == Resample::kBicubic ? &bicubic : &bilinear;
    const double support = (how == Resample::kBicubic ? 2.0 : 1.0) * widening;
    Taps taps;
    taps.first = std::max<int64_t>(static_cast<int64_t>(center - support + 0.5), 0);
    taps.count = std::min(static_cast<int64_t>(center + support + 0.5), in) - taps.first;
    taps.weight = static_cast<int64_t>(pairs_.size());
    real_.resize(static_cast<size_t>(taps.count));
    double sum = 0;
    for (int64_t j = 0; j < taps.count; ++j) {
      real_[j] = filter((static_cast<double>(j + taps.first) - center + 0.5) * (1 / widening));
      sum += real_[j];
    }
    for (double& weight : real_) {
      weight /= sum;
    }
    for (int64_t j = 0; j < taps.count; j += 2) {
      pairs_.push_back(pair(fixed(real_[j]), j + 1 < taps.count ? fixed(real_[j + 1]) : 0));
    }
    taps_.push_back(taps);
  }

  static int32_t fixed(double weight) {
    return static_cast<int32_t>(std::copysign(0.5, weight) + weight * (1 << kPrecision));
  }

  static WeightPair pair(int32_t first, int32_t second) {
    const auto high = [](int32_t weight) { return (weight + (1 << (kLowBits - 1))) >> kLowBits; };
    const auto low = [&](int32_t weight) { return weight - high(weight) * (1 << kLowBits); };
    return {two_halves(high(first), high(second)), two_halves(low(first), low(second))};
  }

  std::vector<Taps> taps_;
  std::vector<WeightPair> pairs_;  // of each output one after the other
  std::vector<double> real_;       // of the output that is being added
};

#ifdef __SSE2__

// Sums of four values, in the parts of the weights.
struct Sums {
  __m128i high = _mm_setzero_si128();
  __m128i low = _mm_setzero_si128();

  // `values`: 16 bits each, a value of the first tap beside the same one of the second, four times.
  void add(__m128i values, const WeightPair& weights) {
    high = _mm_add_epi32(high, _mm_madd_epi16(values, _mm_set1_epi32(weights.high)));
    low = _mm_add_epi32(low, _mm_madd_epi16(values, _mm_set1_epi32(weights.low)));
  }

  __m128i rounded() const {
    const auto sum = _mm_add_epi32(_mm_slli_epi32(high, kLowBits), low);
    return _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (kPrecision - 1))), kPrecision);
  }
};

void store_pixel(uint8_t* out, __m128i values) {
  const auto words = _mm_packs_epi32(values, values);
  const int32_t bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
  std::memcpy(out, &bytes, sizeof(bytes));
}

// Reads up to kReadAhead bytes from the last tap on, and writes one byte too many.
void resize_row(const uint8_t* in, const Axis& axis, uint8_t* out) {
  const auto zero = _mm_setzero_si128();
  for (const auto& taps : axis.taps()) {
    const auto* pairs = axis.pairs(taps);
    const uint8_t* pixel = in + kChannels * taps.first;
    Sums sums;
    for (int64_t j = 0; j < taps.count; j += 2, pixel += 2 * kChannels) {
      const auto first = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(pixel));
      const auto second = _mm_srli_epi64(first, 8 * kChannels);
      sums.add(_mm_unpacklo_epi8(_mm_unpacklo_epi8(first, second), zero), pairs[j / 2]);
    }
    store_pixel(out, sums.rounded());
    out += kChannels;
  }
}

// Eight values of one row of the result.
void blend_eight(
    const uint8_t* rows, int64_t stride, const Taps& taps, const WeightPair* pairs, uint8_t* out) {
  const auto zero = _mm_setzero_si128();
  const auto load = [&](int64_t row) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(rows + row * stride));
  };
  Sums left;
  Sums right;
  for (int64_t j = 0; j < taps.count; j += 2) {
    const auto both = _mm_unpacklo_epi8(load(j), load(std::min(j + 1, taps.count - 1)));
    left.add(_mm_unpacklo_epi8(both, zero), pairs[j / 2]);
    right.add(_mm_unpackhi_epi8(both, zero), pairs[j / 2]);
  }
  const auto words = _mm_packs_epi32(left.rounded(), right.rounded());
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packus_epi16(words, words));
}

#else

int32_t weight_of(const WeightPair& pair, int64_t which) {
  const auto half = [&](int32_t both) {
    return static_cast<int16_t>(static_cast<uint32_t>(both) >> (which == 0 ? 0U : 16U));
  };
  return half(pair.high) * (1 << kLowBits) + half(pair.low);
}

uint8_t rounded(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + (1 << (kPrecision - 1))) >> kPrecision, 0, 255));
}

void resize_row(const uint8_t* in, const Axis& axis, uint8_t* out) {
  for (const auto& taps : axis.taps()) {
    const auto* pairs = axis.pairs(taps);
    const uint8_t* pixel = in + kChannels * taps.first;
    int32_t sums[kChannels] = {};
    for (int64_t j = 0; j < taps.count; ++j, pixel += kChannels) {
      const int32_t weight = weight_of(pairs[j / 2], j % 2);
      for (int64_t c = 0; c < kChannels; ++c) {
        sums[c] += weight * pixel[c];
      }
    }
    std::transform(sums, sums + kChannels, out, rounded);
    out += kChannels;
  }
}

void blend_eight(
    const uint8_t* rows, int64_t stride, const Taps& taps, const WeightPair* pairs, uint8_t* out) {
  int32_t sums[8] = {};
  for (int64_t j = 0; j < taps.count; ++j, rows += stride) {
    const int32_t weight = weight_of(pairs[j / 2], j % 2);
    for (int64_t i = 0; i < 8; ++i) {
      sums[i] += weight * rows[i];
    }
  }
  std::transform(sums, sums + 8, out, rounded);
}

#endif

// Rows of pixels with kReadAhead bytes behind the last.
struct Rows {
  std::vector<uint8_t> bytes;
  int64_t stride = 0;

  Rows(int64_t count, int64_t width)
      : bytes(static_cast<size_t>(count * width * kChannels + kReadAhead)),
        stride(width * kChannels) {}
  uint8_t* row(int64_t y) { return bytes.data() + y * stride; }
};

// The columns that `axis` asks for, of the rows from `first` to `end`.
Rows resize_columns(const Image& image, const Axis& axis, int64_t first, int64_t end) {
  const int64_t height = image.pixels.size(0);
  const int64_t width = image.pixels.size(1);
  const auto* in = image.pixels.data_ptr<uint8_t>();
  Rows out(end - first, static_cast<int64_t>(axis.taps().size()));
  Rows copy(1, width);
  for (int64_t y = first; y < end; ++y) {
    const uint8_t* row = in + y * copy.stride;
    if ((y + 1) * copy.stride + kReadAhead > height * copy.stride) {
      row = std::copy_n(row, copy.stride, copy.row(0)) - copy.stride;  // nothing to read behind it
    }
    resize_row(row, axis, out.row(y - first));
  }
  return out;
}

// One row of the result; `rows` begins with the first tap's.
void blend_row(
    const uint8_t* rows, int64_t stride, const Taps& taps, const WeightPair* pairs, uint8_t* out) {
  int64_t x = 0;
  for (; x + 8 <= stride; x += 8) {
    blend_eight(rows + x, stride, taps, pairs, out + x);
  }
  if (x < stride) {
    // The last eight values read into the next row or the bytes behind all rows.
    uint8_t rest[8];
    blend_eight(rows + x, stride, taps, pairs, rest);
    std::copy_n(rest, stride - x, out + x);
  }
}

}  // namespace

Image resize(const Image& image, int64_t height, int64_t width, Resample how) {
  return resize(image, height, width, how, {0, 0, height, width});
}

Image resize(
    const Image& image, int64_t height, int64_t width, Resample how, const Window& window) {
  require<InternalError>(
      window.top >= 0 && window.left >= 0 && window.height > 0 && window.width > 0 &&
          window.top <= height - window.height && window.left <= width - window.width,
      "resize: a window of ", window.height, " x ", window.width, " at (", window.top, ", ",
      window.left, ") of an image of ", height, " x ", width);
  const Axis vertical(image.pixels.size(0), height, window.top, window.height, how);
  const Axis horizontal(image.pixels.size(1), width, window.left, window.width, how);
  auto rows = resize_columns(image, horizontal, vertical.first(), vertical.end());
  Image result{at::empty({window.height, window.width, kChannels}, at::kByte)};
  auto* out = result.pixels.data_ptr<uint8_t>();
  for (const auto& taps : vertical.taps()) {
    blend_row(
        rows.row(taps.first - vertical.first()), rows.stride, taps, vertical.pairs(taps), out);
    out += rows.stride;
  }
  return result;
}

}  // namespace theseus::data
