#include "theseus/data/utf8.h"

#include <algorithm>
#include <cstdint>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data {
namespace {

constexpr std::string_view kMark = "\xef\xbb\xbf";

// How many bytes the character at the beginning of `text` takes; 0: it is none. Overlong forms, surrogates and what is
// beyond U+10FFFF are none.
size_t length_of_character(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : first >= 0xE0 && first <= 0xEF ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  const unsigned least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (length == 0 || length > text.size() || byte(1) < least || byte(1) > most) {
    return 0;
  }
  for (size_t i = 2; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  return length;
}

// Where the first byte stands that is no UTF-8, or the end.
size_t first_wrong(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    const auto length = length_of_character(bytes.substr(at, 4));
    if (length == 0) {
      break;
    }
    at += length;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  return first_wrong(bytes) == bytes.size();
}

std::string_view utf8_text(std::string_view bytes, const std::string& origin) {
  require(
      !bytes.starts_with("\xff\xfe") && !bytes.starts_with("\xfe\xff"), origin,
      " is UTF-16; expected UTF-8");
  const auto wrong = first_wrong(bytes);
  if (wrong < bytes.size()) {
    const auto before = bytes.substr(0, wrong);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const auto begin = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
    throw InputError(c10::str(
        origin, ":", line, ": byte ", wrong - begin + 1, " of the line, ",
        printable(bytes.substr(wrong, 1)), ", is not UTF-8; save the file as UTF-8"));
  }
  return bytes.starts_with(kMark) ? bytes.substr(kMark.size()) : bytes;
}

}  // namespace theseus::data
