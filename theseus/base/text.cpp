#include "theseus/base/text.h"

namespace theseus {

std::string printable(std::string_view text, size_t longest) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string result;
  for (const char character : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) {
      result.push_back(character);
    } else {
      result.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return text.size() > longest ? result + "..." : result;
}

}  // namespace theseus
