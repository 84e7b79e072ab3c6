#include "theseus/base/text.h"

#include <algorithm>

namespace theseus {
namespace {

void append_escaped(std::string& result, unsigned char byte) {
  constexpr std::string_view kHex = "0123456789abcdef";
  result.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
}

}  // namespace

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::string printable(std::string_view text, size_t longest) {
  std::string result;
  for (const char character : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) {
      result.push_back(character);
    } else {
      append_escaped(result, byte);
    }
  }
  return text.size() > longest ? result + "..." : result;
}

std::string without_controls(std::string_view text) {
  std::string result;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (character == '\n' || (byte >= 0x20 && byte != 0x7f)) {
      result.push_back(character);
    } else {
      append_escaped(result, byte);
    }
  }
  return result;
}

std::string joined(const std::vector<std::string>& names, size_t most) {
  std::string result;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) {
    result.append(i == 0 ? "" : ", ").append(names[i]);
  }
  return names.size() > most ? result + " and " + std::to_string(names.size() - most) + " more"
                             : result;
}

}  // namespace theseus
