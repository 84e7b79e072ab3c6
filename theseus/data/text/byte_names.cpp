#include "theseus/data/text/byte_names.h"

#include <optional>

#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

constexpr size_t kVisible = 188;

bool is_visible(unsigned byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

std::optional<char> byte_of(char32_t value) {
  if (value < 256) {
    return is_visible(value) ? std::optional<char>(static_cast<char>(value)) : std::nullopt;
  }
  const size_t place = value - 256 + kVisible;
  return place < 256 ? std::optional<char>(static_cast<char>(byte_order()[place])) : std::nullopt;
}

}  // namespace

const std::array<unsigned char, 256>& byte_order() {
  static const auto order = [] {
    std::array<unsigned char, 256> made = {};
    size_t visible = 0;
    size_t hidden = kVisible;
    for (unsigned byte = 0; byte < 256; ++byte) {
      made[is_visible(byte) ? visible++ : hidden++] = static_cast<unsigned char>(byte);
    }
    return made;
  }();
  return order;
}

const std::array<std::string, 256>& byte_names() {
  static const auto names = [] {
    std::array<std::string, 256> made;
    for (size_t i = 0; i < 256; ++i) {
      const unsigned char byte = byte_order()[i];
      append_utf8(made[byte], i < kVisible ? byte : static_cast<char32_t>(256 + i - kVisible));
    }
    return made;
  }();
  return names;
}

std::string to_byte_names(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    out.append(byte_names()[static_cast<unsigned char>(byte)]);
  }
  return out;
}

std::string from_byte_names(std::string_view word) {
  std::string out;
  for (size_t at = 0; at < word.size();) {
    const CodePoint found = code_point(word, at);
    const std::optional<char> byte = byte_of(found.value);
    if (!byte) {
      return std::string(word);
    }
    out.push_back(*byte);
    at += found.size;
  }
  return out;
}

}  // namespace theseus::data::text
