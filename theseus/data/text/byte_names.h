#pragma once

#include <array>
#include <string>
#include <string_view>

namespace theseus::data::text {

// The visible characters that stand for bytes in the vocabularies of byte-level BPE: the byte itself
// where Latin-1 has a visible character, U+0100 and up for the others.
const std::array<std::string, 256>& byte_names();
// The order in which CLIP's vocabulary begins.
const std::array<unsigned char, 256>& byte_order();

std::string to_byte_names(std::string_view bytes);
// The bytes behind a word; the word itself when one of its characters stands for no byte.
std::string from_byte_names(std::string_view word);

}  // namespace theseus::data::text
