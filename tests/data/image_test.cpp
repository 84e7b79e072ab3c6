#include "theseus/data/image.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "tests/support/expect_error.h"
#include "tests/support/images.h"

namespace theseus::data {
namespace {

using tests::decode;
using tests::error_of;
using tests::expect_parts;
using tests::image_bytes;

std::vector<std::string> file_names() {
  auto names = tests::golden_names("decode/");
  for (auto& name : names) {
    name = tests::words(name)[1];
  }
  return names;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

std::string big_endian(uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) {
    text += static_cast<char>((value >> shift) & 0xffU);
  }
  return text;
}

// CRC-32, as behind every chunk of a PNG.
uint32_t checksum(const std::string& bytes) {
  uint32_t sum = ~0U;
  for (const char byte : bytes) {
    sum ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) {
      sum = (sum >> 1) ^ ((sum & 1) != 0 ? 0xedb88320U : 0);
    }
  }
  return ~sum;
}

// Against Pillow 9.4 with libjpeg-turbo 2.1.5, all 47 files were equal: largest and mean difference 0.
// Another libjpeg may round its inverse transform elsewhere; PNG and PNM leave no room.
TEST(Image, DecodesAsPillowDoes) {
  const auto names = file_names();
  ASSERT_EQ(names.size(), 47);
  for (const auto& name : names) {
    SCOPED_TRACE(name);
    const auto apart =
        tests::difference(decode(image_bytes(name), name), tests::golden_image("decode/" + name));
    EXPECT_LE(apart.largest, ends_with(name, ".jpg") ? 1 : 0);
    EXPECT_LE(apart.mean, ends_with(name, ".jpg") ? 0.05 : 0);
  }
}

TEST(Image, IsContiguousBytes) {
  const auto image = decode(image_bytes("rgb_420.jpg"), "a");
  EXPECT_EQ(image.pixels.sizes(), (std::vector<int64_t>{21, 31, 3}));
  EXPECT_EQ(image.pixels.scalar_type(), at::kByte);
  EXPECT_TRUE(image.pixels.is_contiguous());
}

// Every file cut anywhere: either an error with the name, or, when only what follows the pixels is gone,
// the same pixels. The last number of a text may lose digits unseen.
TEST(Image, CutShortIsAnError) {
  for (const auto& name : file_names()) {
    SCOPED_TRACE(name);
    const auto bytes = image_bytes(name);
    const auto whole = decode(bytes, name);
    const size_t open_end = name[0] == 'p' && name[1] <= '3' ? 4 : 0;
    const size_t step = std::max<size_t>(1, bytes.size() / 97);
    for (size_t size = 0; size + open_end < bytes.size(); size += step) {
      try {
        const auto image = decode(bytes.substr(0, size), "photos/cut");
        EXPECT_TRUE(at::equal(image.pixels, whole.pixels)) << "at " << size;
        EXPECT_GE(size + 20, bytes.size());
      } catch (const InputError& error) {
        expect_parts(error.what(), "photos/cut: ");
      }
    }
  }
}

TEST(Image, ChangedBytesNeverCrash) {
  uint32_t state = 1;
  for (const auto& name : file_names()) {
    const auto bytes = image_bytes(name);
    for (int round = 0; round < 60; ++round) {
      auto changed = bytes;
      for (int i = 0; i <= round % 4; ++i) {
        state = state * 1664525U + 1013904223U;
        changed[(state >> 8) % changed.size()] = static_cast<char>(state >> 3);
      }
      try {
        decode(changed, "changed");
      } catch (const InputError& error) {
        expect_parts(error.what(), "changed");
      }
    }
  }
}

TEST(Image, AbsurdSizesGetNoMemory) {
  auto png = image_bytes("rgb8.png");
  png.replace(16, 8, big_endian(30000) + big_endian(30000));
  png.replace(29, 4, big_endian(checksum(png.substr(12, 17))));
  expect_parts(error_of([&] { decode(png, "big.png"); }), "big.png", "30000 x 30000", "200000000");
  auto jpeg = image_bytes("rgb_420.jpg");
  const auto frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xf0\x01\xf0\x01");
  expect_parts(error_of([&] { decode(jpeg, "big.jpg"); }), "big.jpg", "61441 x 61441");
  expect_parts(error_of([] { decode("P5 99999999 99999999 255\n", "big.pgm"); }), "cut short");
  expect_parts(error_of([] { decode("P5 9999999999 1 255\n", "long.pgm"); }), "cut short");
  std::string wide(200000, ' ');
  wide.replace(0, 13, "P4 1000001 1\n");
  expect_parts(error_of([&] { decode(wide, "long.pbm"); }), "1000001 x 1", "1000000 a side");
  expect_parts(error_of([] { decode("P6 0 5 255\n", "none.ppm"); }), "0 x 5");
}

TEST(Image, SaysWhatIsWrong) {
  expect_parts(error_of([] { decode("", "x"); }), "x: empty");
  expect_parts(
      error_of([] { decode("GIF89a....", "x.gif"); }), "x.gif: is a GIF image", "JPEG, PNG");
  expect_parts(error_of([] { decode("RIFF....WEBPVP8 ", "x"); }), "a WebP image");
  expect_parts(error_of([] { decode("\x01\x02hello", "x"); }), "begins with '\\x01\\x02hello'");
  expect_parts(error_of([] { decode("<html>", "x\n.jpg"); }), "x\\x0a.jpg: is text");
  expect_parts(error_of([] { decode("P5 3 3 70000\n", "x"); }), "white is 70000");
  expect_parts(error_of([] { decode("P2 1 1 9\n12\n", "x"); }), "a value of 12, but white is 9");
  expect_parts(error_of([] { decode("P1 1 1\n7", "x"); }), "expected 0 or 1");
  expect_parts(error_of([] { decode("P2 1 1 9\n-1\n", "x"); }), "expected a number");
  expect_parts(error_of([] { decode("P3 1 1 99999999999\n", "x"); }), "at most 10 digits");
}

TEST(Image, ManyScansAreRefused) {
  // The last scan of a progressive file again and again: each takes a pass over the whole image.
  const auto bytes = image_bytes("progressive.jpg");
  const auto scan = bytes.rfind("\xff\xda");
  const auto end = bytes.size() - 2;
  auto many = bytes.substr(0, end);
  for (int i = 0; i < 600; ++i) {
    many += bytes.substr(scan, end - scan);
  }
  many += bytes.substr(end);
  expect_parts(error_of([&] { decode(many, "bomb.jpg"); }), "bomb.jpg", "more than 500 scans");
}

}  // namespace
}  // namespace theseus::data
