#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace theseus::data::text {

// Bytes [begin, end) of some text.
struct Range {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const Range&) const = default;
  size_t size() const { return end - begin; }
};

// Valid UTF-8 that was made from an original text, with the bytes of the original behind each of its
// own. All bytes of a character have the same origin.
struct Aligned {
  struct Origin {
    uint32_t begin;
    uint32_t end;
  };

  std::string text;
  std::vector<Origin> origins;  // one for each byte of text

  void append(std::string_view bytes, Origin origin);
  void append(const Aligned& from, Range range);
  Aligned slice(Range range) const;
  // The original bytes behind a range: from the first to the last of them. Of an empty range: its
  // place.
  Range origin(Range range) const;
};

// The text with U+FFFD for what is not UTF-8. Throws InputError above 1 GiB.
Aligned repaired(std::string_view original);

}  // namespace theseus::data::text
