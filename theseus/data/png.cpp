// PNG through libpng. As in jpeg.cpp, functions that call setjmp hold no C++ objects.

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <png.h>

#include "theseus/data/codecs.h"

namespace theseus::data {
namespace {

struct PngDecoder {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const std::byte* next = nullptr;
  size_t left = 0;
  std::jmp_buf back{};
  char message[120] = "out of memory";

  PngDecoder() = default;
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;
  ~PngDecoder() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* decoder = static_cast<PngDecoder*>(png_get_error_ptr(png));
  std::snprintf(decoder->message, sizeof(decoder->message), "%s", message);
  std::longjmp(decoder->back, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, size_t count) {
  auto* decoder = static_cast<PngDecoder*>(png_get_io_ptr(png));
  if (count > decoder->left) {
    on_error(png, "it is cut short");
  }
  std::memcpy(out, decoder->next, count);
  decoder->next += count;
  decoder->left -= count;
}

bool read_header(PngDecoder& decoder) {
  if (setjmp(decoder.back) != 0) {
    return false;
  }
  decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, on_error, on_warning);
  if (decoder.png == nullptr) {
    return false;
  }
  decoder.info = png_create_info_struct(decoder.png);
  if (decoder.info == nullptr) {
    return false;
  }
  png_set_read_fn(decoder.png, &decoder, read_bytes);
  // Faults in notes about the image are no faults of the image.
  png_set_benign_errors(decoder.png, 1);
  png_set_user_limits(decoder.png, 0x7fffffff, 0x7fffffff);  // new_image() has ours
  png_read_info(decoder.png, decoder.info);
  return true;
}

bool is_palette(const PngDecoder& decoder) {
  return png_get_color_type(decoder.png, decoder.info) == PNG_COLOR_TYPE_PALETTE;
}

bool is_deep_grey(const PngDecoder& decoder) {
  return png_get_color_type(decoder.png, decoder.info) == PNG_COLOR_TYPE_GRAY &&
         png_get_bit_depth(decoder.png, decoder.info) == 16;
}

// Palettes and grey of 16 bits leave one or two bytes a pixel, everything else RGB.
void ask_for_bytes(PngDecoder& decoder) {
  auto* png = decoder.png;
  if (is_palette(decoder)) {
    png_set_packing(png);
  } else if (!is_deep_grey(decoder)) {
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_16(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
  }
}

// Rows lie `stride` apart, whatever they take.
bool read_rows(PngDecoder& decoder, uint8_t* rows, size_t stride) {
  if (setjmp(decoder.back) != 0) {
    return false;
  }
  ask_for_bytes(decoder);
  const int passes = png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  if (png_get_rowbytes(decoder.png, decoder.info) > stride) {
    png_error(decoder.png, "rows are longer than expected");
  }
  const size_t height = png_get_image_height(decoder.png, decoder.info);
  for (int pass = 0; pass < passes; ++pass) {
    for (size_t y = 0; y < height; ++y) {
      png_read_row(decoder.png, rows + y * stride, nullptr);
    }
  }
  return true;
}

using Palette = std::array<std::array<uint8_t, 3>, 256>;

// Colours that the file leaves out but uses are grey, as in Pillow.
Palette read_palette(PngDecoder& decoder) {
  Palette palette;
  for (size_t i = 0; i < palette.size(); ++i) {
    palette[i].fill(static_cast<uint8_t>(i));
  }
  png_colorp colors = nullptr;
  int count = 0;
  png_get_PLTE(decoder.png, decoder.info, &colors, &count);
  for (int i = 0; i < std::min(count, 256); ++i) {
    palette[i] = {colors[i].red, colors[i].green, colors[i].blue};
  }
  return palette;
}

// In place, from the end, so that no byte is overwritten before it is read.
void expand_palette(const Palette& palette, uint8_t* row, size_t width) {
  for (size_t x = width; x-- > 0;) {
    std::copy_n(palette[row[x]].data(), 3, row + 3 * x);
  }
}

void expand_deep_grey(uint8_t* row, size_t width) {
  for (size_t x = width; x-- > 0;) {
    const uint8_t value = row[2 * x] == 0 ? row[2 * x + 1] : 255;
    std::fill_n(row + 3 * x, 3, value);
  }
}

}  // namespace

Image decode_png(std::span<const std::byte> bytes, const std::string& name) {
  PngDecoder decoder;
  decoder.next = bytes.data();
  decoder.left = bytes.size();
  if (!read_header(decoder)) {
    fail_to_decode(name, "PNG", decoder.message);
  }
  const size_t height = png_get_image_height(decoder.png, decoder.info);
  const size_t width = png_get_image_width(decoder.png, decoder.info);
  auto image = new_image(static_cast<int64_t>(height), static_cast<int64_t>(width), name);
  auto* pixels = image.pixels.data_ptr<uint8_t>();
  if (!read_rows(decoder, pixels, 3 * width)) {
    fail_to_decode(name, "PNG", decoder.message);
  }
  if (is_palette(decoder)) {
    const auto palette = read_palette(decoder);
    for (size_t y = 0; y < height; ++y) {
      expand_palette(palette, pixels + y * 3 * width, width);
    }
  } else if (is_deep_grey(decoder)) {
    for (size_t y = 0; y < height; ++y) {
      expand_deep_grey(pixels + y * 3 * width, width);
    }
  }
  return image;
}

}  // namespace theseus::data
