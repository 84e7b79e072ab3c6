// PBM, PGM and PPM, as text (P1 to P3) and as bytes (P4 to P6).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>

#include "theseus/base/text.h"
#include "theseus/data/codecs.h"

namespace theseus::data {
namespace {

struct Header {
  char kind = '6';
  int64_t width = 0;
  int64_t height = 0;
  int64_t most = 1;  // the value of white

  bool bits() const { return kind == '1' || kind == '4'; }
  bool grey() const { return kind == '2' || kind == '5'; }
  bool text() const { return kind <= '3'; }
};

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

class PnmReader {
 public:
  PnmReader(std::span<const std::byte> bytes, const std::string& name)
      : rest_(as_text(bytes)), name_(name) {}

  [[noreturn]] void fail(const std::string& why) const { fail_to_decode(name_, "PNM", why); }

  std::string_view take(size_t count) {
    if (count > rest_.size()) {
      fail("it is cut short");
    }
    const auto taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }

  // The next character that is neither space nor comment; at the end an error.
  char skip_to_word() {
    for (;;) {
      const char c = take(1)[0];
      if (c == '#') {
        rest_.remove_prefix(std::min(rest_.find_first_of("\r\n"), rest_.size()));
      } else if (!is_space(c)) {
        return c;
      }
    }
  }

  // A number and, unless the file ends with it, the one space behind it.
  int64_t number() {
    int64_t value = 0;
    int digits = 0;
    char c = skip_to_word();
    for (;;) {
      if (c < '0' || c > '9' || ++digits > 10) {
        fail("expected a number of at most 10 digits");
      }
      value = 10 * value + (c - '0');
      if (rest_.empty()) {
        return value;
      }
      if (rest_[0] == '#') {
        return value;
      }
      c = take(1)[0];
      if (is_space(c)) {
        return value;
      }
    }
  }

 private:
  std::string_view rest_;
  const std::string& name_;
};

Header read_header(PnmReader& reader) {
  Header header;
  header.kind = reader.take(2)[1];
  header.width = reader.number();
  header.height = reader.number();
  if (!header.bits()) {
    header.most = reader.number();
    if (header.most < 1 || header.most > 65535) {
      reader.fail("white is " + std::to_string(header.most) + "; expected 1 to 65535");
    }
  }
  return header;
}

// Deep grey is not brought to 8 bits but cut at 255: that is what Pillow's mode I does.
uint8_t eight_bits(int64_t value, const Header& header) {
  const bool deep = header.grey() && header.most > 255;
  const double range = deep ? 65535 : 255;
  const double scaled =
      std::nearbyint(static_cast<double>(value) / static_cast<double>(header.most) * range);
  return static_cast<uint8_t>(std::min(scaled, 255.0));
}

int64_t text_value(PnmReader& reader, const Header& header) {
  if (header.bits()) {
    const char c = reader.skip_to_word();
    if (c != '0' && c != '1') {
      reader.fail("expected 0 or 1");
    }
    return c == '0' ? 1 : 0;  // 1 is black
  }
  const int64_t value = reader.number();
  if (value > header.most) {
    reader.fail(
        "a value of " + std::to_string(value) + ", but white is " + std::to_string(header.most));
  }
  return value;
}

void read_text(PnmReader& reader, const Header& header, uint8_t* pixels) {
  const int64_t count = header.width * header.height * (header.kind == '3' ? 3 : 1);
  const int copies = header.kind == '3' ? 1 : 3;
  for (int64_t i = 0; i < count; ++i) {
    std::fill_n(pixels + i * copies, copies, eight_bits(text_value(reader, header), header));
  }
}

void read_bits(PnmReader& reader, const Header& header, uint8_t* pixels) {
  for (int64_t y = 0; y < header.height; ++y) {
    const auto row = reader.take(static_cast<size_t>((header.width + 7) / 8));
    for (int64_t x = 0; x < header.width; ++x) {
      const bool black = ((static_cast<unsigned char>(row[x / 8]) >> (7 - x % 8)) & 1) != 0;
      std::fill_n(pixels + 3 * (y * header.width + x), 3, black ? 0 : 255);
    }
  }
}

void read_binary(PnmReader& reader, const Header& header, uint8_t* pixels) {
  const int64_t count = header.width * header.height * (header.grey() ? 1 : 3);
  const int64_t wide = header.most > 255 ? 2 : 1;
  const auto bytes = reader.take(static_cast<size_t>(count * wide));
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  if (!header.grey() && header.most == 255) {
    std::memcpy(pixels, data, bytes.size());
    return;
  }
  const int copies = header.grey() ? 3 : 1;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t value = wide == 1 ? data[i] : 256 * data[2 * i] + data[2 * i + 1];
    std::fill_n(pixels + i * copies, copies, eight_bits(value, header));
  }
}

}  // namespace

Image decode_pnm(std::span<const std::byte> bytes, const std::string& name) {
  PnmReader reader(bytes, name);
  const auto header = read_header(reader);
  // A value takes a bit at least: what is far too short for its size gets no memory.
  const auto room = static_cast<int64_t>(bytes.size()) * 8;
  if (header.width > 0 && header.height > room / header.width) {
    reader.fail("it is cut short");
  }
  auto image = new_image(header.height, header.width, name);
  auto* pixels = image.pixels.data_ptr<uint8_t>();
  if (header.text()) {
    read_text(reader, header, pixels);
  } else if (header.bits()) {
    read_bits(reader, header, pixels);
  } else {
    read_binary(reader, header, pixels);
  }
  return image;
}

}  // namespace theseus::data
