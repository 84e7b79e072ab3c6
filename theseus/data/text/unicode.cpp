#include "theseus/data/text/unicode.h"

#include <cstdint>
#include <utf8proc.h>

namespace theseus::data::text {
namespace {

// How a sequence that begins with this byte goes on: its length, and what the second byte may be.
struct Lead {
  size_t size;
  uint8_t low;
  uint8_t high;
};

Lead lead(uint8_t byte) {
  if (byte < 0x80) {
    return {1, 0, 0};
  }
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {2, 0x80, 0xBF};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    const uint8_t low = byte == 0xE0 ? 0xA0 : 0x80;   // not overlong
    const uint8_t high = byte == 0xED ? 0x9F : 0xBF;  // no surrogates
    return {3, low, high};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    const uint8_t low = byte == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = byte == 0xF4 ? 0x8F : 0xBF;  // not above U+10FFFF
    return {4, low, high};
  }
  return {0, 0, 0};
}

utf8proc_category_t category(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool within(char32_t value, char32_t first, char32_t last) {
  return value >= first && value <= last;
}

}  // namespace

CodePoint code_point(std::string_view text, size_t at) {
  const auto first = static_cast<uint8_t>(text[at]);
  const Lead expected = lead(first);
  if (expected.size == 1) {
    return {first, 1, true};
  }
  if (expected.size == 0) {
    return {kReplacement, 1, false};
  }
  char32_t value = first & (0x7F >> expected.size);
  for (size_t i = 1; i < expected.size; ++i) {
    const uint8_t next = at + i < text.size() ? static_cast<uint8_t>(text[at + i]) : 0;
    const bool fits =
        i == 1 ? next >= expected.low && next <= expected.high : next >= 0x80 && next <= 0xBF;
    if (!fits) {
      return {kReplacement, i, false};
    }
    value = value << 6 | (next & 0x3F);
  }
  return {value, expected.size, true};
}

size_t before(std::string_view text, size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80);
  return at;
}

void append_utf8(std::string& out, char32_t value) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool is_space(char32_t value) {
  return within(value, 0x09, 0x0D) || value == 0x20 || value == 0x85 || value == 0xA0 ||
         value == 0x1680 || within(value, 0x2000, 0x200A) || value == 0x2028 || value == 0x2029 ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

bool is_word(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      break;
  }
  // Joiners, and the symbols that count as letters.
  return is_mark(value) || value == 0x200C || value == 0x200D || within(value, 0x24B6, 0x24E9) ||
         within(value, 0x1F130, 0x1F149) || within(value, 0x1F150, 0x1F169) ||
         within(value, 0x1F170, 0x1F189);
}

bool is_mark(char32_t value) {
  const auto found = category(value);
  return found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_MC ||
         found == UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing(char32_t value) {
  return category(value) == UTF8PROC_CATEGORY_MN;
}

bool is_other(char32_t value) {
  const auto found = category(value);
  return found == UTF8PROC_CATEGORY_CC || found == UTF8PROC_CATEGORY_CF ||
         found == UTF8PROC_CATEGORY_CS || found == UTF8PROC_CATEGORY_CO;
}

bool is_punctuation(char32_t value) {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return true;
    default:
      return false;
  }
}

bool is_ideograph(char32_t value) {
  return within(value, 0x4E00, 0x9FFF) || within(value, 0x3400, 0x4DBF) ||
         within(value, 0x20000, 0x2A6DF) || within(value, 0x2A700, 0x2B73F) ||
         within(value, 0x2B740, 0x2B81F) || within(value, 0x2B920, 0x2CEAF) ||
         within(value, 0xF900, 0xFAFF) || within(value, 0x2F800, 0x2FA1F);
}

bool is_cased(char32_t value) {
  const auto found = category(value);
  return found == UTF8PROC_CATEGORY_LU || found == UTF8PROC_CATEGORY_LL ||
         found == UTF8PROC_CATEGORY_LT || within(value, 0x2B0, 0x2B8) ||
         within(value, 0x2160, 0x217F) || within(value, 0x24B6, 0x24E9);
}

bool is_case_ignorable(char32_t value) {
  const auto found = category(value);
  return found == UTF8PROC_CATEGORY_MN || found == UTF8PROC_CATEGORY_ME ||
         found == UTF8PROC_CATEGORY_CF || found == UTF8PROC_CATEGORY_LM ||
         found == UTF8PROC_CATEGORY_SK || value == '\'' || value == '.' || value == ':' ||
         value == 0xB7 || value == 0x2018 || value == 0x2019 || value == 0x2024 || value == 0x2027;
}

void append_lower(std::string& out, char32_t value) {
  if (value < 0x80) {
    out.push_back(static_cast<char>(value >= 'A' && value <= 'Z' ? value + 32 : value));
    return;
  }
  if (value == 0x130) {  // the one letter whose lower case is two
    out.append("i\xCC\x87");
    return;
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value))));
}

}  // namespace theseus::data::text
