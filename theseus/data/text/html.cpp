#include "theseus/data/text/html.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

// What browsers make of numbers 0x80 to 0x9F.
constexpr std::array<char16_t, 32> kWindows = {
    0x20AC, 0x81,   0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
    0x2039, 0x0152, 0x8D,   0x017D, 0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
    0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0x9D,   0x017E, 0x0178};

// A reference at some place: how many bytes it takes, and what it stands for.
struct Reference {
  size_t size;
  std::string value;
};

bool is_dropped(char32_t value) {
  const bool control =
      (value >= 1 && value <= 8) || value == 0x0B || (value >= 0x0E && value < 0x20);
  const bool noncharacter = (value >= 0xFDD0 && value <= 0xFDEF) || (value & 0xFFFE) == 0xFFFE;
  return control || value == 0x7F || noncharacter;
}

std::string numbered(char32_t value) {
  std::string out;
  if (value == 0 || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) {
    append_utf8(out, kReplacement);
  } else if (value >= 0x80 && value <= 0x9F) {
    append_utf8(out, kWindows[value - 0x80]);
  } else if (!is_dropped(value)) {
    append_utf8(out, value);
  }
  return out;
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') {
    return letter - '0';
  }
  const char lower = static_cast<char>(letter | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

// `text` begins with "&#".
std::optional<Reference> number_at(std::string_view text) {
  const bool hex = text.size() > 2 && (text[2] == 'x' || text[2] == 'X');
  const size_t first = hex ? 3 : 2;
  const int base = hex ? 16 : 10;
  char32_t value = 0;
  size_t at = first;
  for (; at < text.size() && digit_of(text[at]) < base; ++at) {
    value = std::min<char32_t>(
        value * static_cast<char32_t>(base) + static_cast<char32_t>(digit_of(text[at])), 0x110000);
  }
  if (at == first) {
    return std::nullopt;
  }
  return Reference{at + (at < text.size() && text[at] == ';' ? 1 : 0), numbered(value)};
}

// `text` begins with "&". The longest beginning that is a name counts.
std::optional<Reference> name_at(std::string_view text) {
  constexpr size_t kLongest = 32;
  size_t end = 1;
  while (end < text.size() && end <= kLongest &&
         std::string_view("\t\n\f <&#;").find(text[end]) == std::string_view::npos) {
    ++end;
  }
  end += end < text.size() && text[end] == ';' ? 1 : 0;
  for (size_t size = end; size > 2; --size) {
    if (auto value = html_entity(text.substr(1, size - 1))) {
      return Reference{size, std::move(*value)};
    }
  }
  return std::nullopt;
}

}  // namespace

Aligned html_unescaped(const Aligned& in) {
  Aligned out;
  const std::string_view text = in.text;
  size_t at = 0;
  while (at < text.size()) {
    const size_t next = std::min(text.find('&', at), text.size());
    out.append(in, {at, next});
    if (next == text.size()) {
      break;
    }
    const std::string_view rest = text.substr(next);
    const auto found = rest.starts_with("&#") ? number_at(rest) : name_at(rest);
    const size_t size = found ? found->size : 1;
    if (found) {
      const Range origin = in.origin({next, next + size});
      out.append(
          found->value, {static_cast<uint32_t>(origin.begin), static_cast<uint32_t>(origin.end)});
    } else {
      out.append(in, {next, next + 1});
    }
    at = next + size;
  }
  return out;
}

}  // namespace theseus::data::text
