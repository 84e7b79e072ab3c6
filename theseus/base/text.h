#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace theseus {

// Bytes as the text that they are; valid as long as they are.
std::string_view as_text(std::span<const std::byte> bytes);

// Text of unknown origin for a message: bytes that are not printable ASCII become \xNN (a file must
// not be able to write to the reader's terminal), and what is longer than `longest` is cut.
std::string printable(std::string_view text, size_t longest = 120);

// Text of several lines on its way to a terminal: control characters other than the end of a line
// become \xNN, letters of every language stay.
std::string without_controls(std::string_view text);

// "a, b, c and 2 more": the first `most` of the names.
std::string joined(const std::vector<std::string>& names, size_t most);

}  // namespace theseus
