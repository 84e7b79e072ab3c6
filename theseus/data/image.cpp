#include "theseus/data/image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/codecs.h"

namespace theseus::data {
namespace {

struct Signature {
  std::string_view format;
  std::string_view bytes;
  size_t offset = 0;
  Image (*decode)(std::span<const std::byte>, const std::string&) = nullptr;
};

using namespace std::string_view_literals;

// Formats without a decoder are here so that the message can say what the file is.
constexpr std::array kSignatures = {
    Signature{"JPEG", "\xff\xd8\xff"sv, 0, &decode_jpeg},
    Signature{"PNG", "\x89PNG\r\n\x1a\n"sv, 0, &decode_png},
    Signature{"PBM", "P1"sv, 0, &decode_pnm},
    Signature{"PGM", "P2"sv, 0, &decode_pnm},
    Signature{"PPM", "P3"sv, 0, &decode_pnm},
    Signature{"PBM", "P4"sv, 0, &decode_pnm},
    Signature{"PGM", "P5"sv, 0, &decode_pnm},
    Signature{"PPM", "P6"sv, 0, &decode_pnm},
    Signature{"a GIF image", "GIF8"sv},
    Signature{"a BMP image", "BM"sv},
    Signature{"a TIFF image", "II*\0"sv},
    Signature{"a TIFF image", "MM\0*"sv},
    Signature{"a WebP image", "WEBP"sv, 8},
    Signature{"an AVIF or HEIF image", "ftyp"sv, 4},
    Signature{"a JPEG 2000 image", "\0\0\0\x0cjP"sv},
    Signature{"text", "<"sv},
};

bool matches(std::span<const std::byte> bytes, const Signature& signature) {
  const auto& wanted = signature.bytes;
  return bytes.size() >= signature.offset + wanted.size() &&
         std::memcmp(bytes.data() + signature.offset, wanted.data(), wanted.size()) == 0;
}

std::string first_bytes(std::span<const std::byte> bytes) {
  const std::string_view text(
      reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 8));
  return "begins with '" + printable(text) + "'";
}

}  // namespace

Image new_image(int64_t height, int64_t width, const std::string& name) {
  require(
      width > 0 && height > 0 && std::max(height, width) <= kMostSide &&
          height * width <= kMostPixels,
      printable(name, 400), ": the image says it has ", width, " x ", height,
      " pixels; expected at least 1 x 1, at most ", kMostSide, " a side and ", kMostPixels,
      " in all. Leave it out or make it smaller");
  return {at::empty({height, width, 3}, at::kByte)};
}

void fail_to_decode(const std::string& name, const char* format, const std::string& why) {
  throw InputError(c10::str(
      printable(name, 400), ": cannot be read as ", format, ": ", printable(why),
      ". Copy the file anew or leave it out"));
}

Image decode_image(std::span<const std::byte> bytes, const std::string& name) {
  require(!bytes.empty(), printable(name, 400), ": empty; expected an image");
  const auto* found = std::find_if(
      kSignatures.begin(), kSignatures.end(), [&](const auto& one) { return matches(bytes, one); });
  if (found != kSignatures.end() && found->decode != nullptr) {
    return found->decode(bytes, name);
  }
  const bool known = found != kSignatures.end();
  throw InputError(c10::str(
      printable(name, 400), ": ", known ? "is " : "",
      known ? std::string(found->format) : first_bytes(bytes),
      "; expected JPEG, PNG, PPM, PGM or PBM. Convert it to one of these"));
}

}  // namespace theseus::data
