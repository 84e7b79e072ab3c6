// JPEG through libjpeg. Its errors come back by longjmp, which must not pass over C++ objects: the
// functions that call setjmp hold nothing but references and numbers, and what owns memory lives in
// their callers.

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>
#include <vector>

#include "theseus/data/codecs.h"

namespace theseus::data {
namespace {

// Ordinary progressive files have about ten; each costs a pass over all coefficients.
constexpr int kMostScans = 500;

struct JpegDecoder {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "";

  JpegDecoder() = default;
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;
  // Also where creating it failed: then it is zeros.
  ~JpegDecoder() { jpeg_destroy_decompress(&info); }
};

[[noreturn]] void leave(j_common_ptr info, const char* message) {
  auto* decoder = static_cast<JpegDecoder*>(info->client_data);
  std::snprintf(decoder->message, sizeof(decoder->message), "%s", message);
  std::longjmp(decoder->back, 1);
}

void on_error(j_common_ptr info) {
  char message[JMSG_LENGTH_MAX];
  info->err->format_message(info, message);
  leave(info, message);
}

void on_message(j_common_ptr) {}

// libjpeg's own source would make up an end and leave the rest grey.
boolean on_end_of_data(j_decompress_ptr info) {
  leave(reinterpret_cast<j_common_ptr>(info), "it is cut short");
}

void skip(j_decompress_ptr info, long count) {
  if (count > 0) {
    if (static_cast<size_t>(count) > info->src->bytes_in_buffer) {
      on_end_of_data(info);
    }
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= static_cast<size_t>(count);
  }
}

void on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number > kMostScans) {
    leave(info, "more than 500 scans");
  }
}

bool read_header(JpegDecoder& decoder, std::span<const std::byte> bytes) {
  auto& info = decoder.info;
  info.err = jpeg_std_error(&decoder.errors);
  decoder.errors.error_exit = on_error;
  decoder.errors.output_message = on_message;
  info.client_data = &decoder;
  if (setjmp(decoder.back) != 0) {
    return false;
  }
  jpeg_create_decompress(&info);
  decoder.source.init_source = [](j_decompress_ptr) {};
  decoder.source.term_source = [](j_decompress_ptr) {};
  decoder.source.fill_input_buffer = on_end_of_data;
  decoder.source.skip_input_data = skip;
  decoder.source.resync_to_restart = jpeg_resync_to_restart;
  decoder.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  decoder.source.bytes_in_buffer = bytes.size();
  info.src = &decoder.source;
  decoder.progress.progress_monitor = on_progress;
  info.progress = &decoder.progress;
  jpeg_read_header(&info, TRUE);
  return true;
}

bool read_rgb(JpegDecoder& decoder, uint8_t* pixels) {
  auto& info = decoder.info;
  if (setjmp(decoder.back) != 0) {
    return false;
  }
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const size_t stride = size_t{3} * info.output_width;
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels + info.output_scanline * stride;
    jpeg_read_scanlines(&info, &row, 1);
  }
  return true;
}

// a * b / 255, rounded.
int scaled(int a, int b) {
  const int product = a * b + 128;
  return ((product >> 8) + product) >> 8;
}

// Inverted ink, as Adobe's programs write it and everyone has to assume.
void rgb_of_inverted_cmyk(const uint8_t* cmyk, uint8_t* rgb, size_t width) {
  for (size_t x = 0; x < width; ++x) {
    const int black = cmyk[4 * x + 3];
    for (size_t c = 0; c < 3; ++c) {
      const int value = black - scaled(255 - cmyk[4 * x + c], black);
      rgb[3 * x + c] = static_cast<uint8_t>(std::clamp(value, 0, 255));
    }
  }
}

// `row` has four bytes a pixel.
bool read_cmyk(JpegDecoder& decoder, uint8_t* pixels, uint8_t* row) {
  auto& info = decoder.info;
  if (setjmp(decoder.back) != 0) {
    return false;
  }
  info.out_color_space = JCS_CMYK;
  jpeg_start_decompress(&info);
  const size_t width = info.output_width;
  while (info.output_scanline < info.output_height) {
    uint8_t* const rgb = pixels + info.output_scanline * 3 * width;
    JSAMPROW cmyk = row;
    jpeg_read_scanlines(&info, &cmyk, 1);
    rgb_of_inverted_cmyk(row, rgb, width);
  }
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const std::byte> bytes, const std::string& name) {
  JpegDecoder decoder;
  if (!read_header(decoder, bytes)) {
    fail_to_decode(name, "JPEG", decoder.message);
  }
  const int channels = decoder.info.num_components;
  if (channels != 1 && channels != 3 && channels != 4) {
    fail_to_decode(name, "JPEG", "it has " + std::to_string(channels) + " channels");
  }
  auto image = new_image(decoder.info.image_height, decoder.info.image_width, name);
  auto* pixels = image.pixels.data_ptr<uint8_t>();
  std::vector<uint8_t> row(channels == 4 ? size_t{4} * decoder.info.image_width : 0);
  const bool whole =
      channels == 4 ? read_cmyk(decoder, pixels, row.data()) : read_rgb(decoder, pixels);
  if (!whole) {
    fail_to_decode(name, "JPEG", decoder.message);
  }
  return image;
}

}  // namespace theseus::data
