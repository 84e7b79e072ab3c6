#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace theseus::tests {

// The bytes of a text, valid as long as it is.
inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace theseus::tests
