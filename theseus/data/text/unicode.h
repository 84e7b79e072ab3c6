#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace theseus::data::text {

constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value;
  size_t size;  // in bytes, at least 1
  bool valid;   // otherwise value is U+FFFD and size that of the longest beginning of a sequence
};

// What stands at `at`, which is before the end. One U+FFFD for each maximal part of a broken sequence,
// as Python, Rust and browsers have it.
CodePoint code_point(std::string_view text, size_t at);
// Where the character that ends at `at`, which is above 0, begins.
size_t before(std::string_view text, size_t at);
void append_utf8(std::string& out, char32_t value);

// Categories and lower case are those of utf8proc: Unicode 15 in utf8proc 2.8.
bool is_space(char32_t value);        // White_Space
bool is_word(char32_t value);         // \w of regular expressions
bool is_mark(char32_t value);         // category M
bool is_nonspacing(char32_t value);   // category Mn
bool is_other(char32_t value);        // category C without the unassigned
bool is_punctuation(char32_t value);  // category P
bool is_ideograph(char32_t value);    // the blocks BERT puts spaces around
bool is_cased(char32_t value);
bool is_case_ignorable(char32_t value);
// The full mapping, without regard to what stands around.
void append_lower(std::string& out, char32_t value);

}  // namespace theseus::data::text
