#include "theseus/data/text/aligned.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {

void Aligned::append(std::string_view bytes, Origin origin) {
  text.append(bytes);
  origins.insert(origins.end(), bytes.size(), origin);
}

void Aligned::append(const Aligned& from, Range range) {
  text.append(from.text, range.begin, range.size());
  const auto first = from.origins.begin();
  origins.insert(
      origins.end(), first + static_cast<ptrdiff_t>(range.begin),
      first + static_cast<ptrdiff_t>(range.end));
}

Aligned Aligned::slice(Range range) const {
  Aligned part;
  part.append(*this, range);
  return part;
}

Range Aligned::origin(Range range) const {
  if (range.begin >= range.end) {
    const bool last = range.begin >= origins.size();
    const size_t place = !last             ? origins[range.begin].begin
                         : origins.empty() ? 0
                                           : origins.back().end;
    return {place, place};
  }
  Range found = {origins[range.begin].begin, origins[range.begin].end};
  for (size_t i = range.begin; i < range.end; ++i) {
    found.begin = std::min<size_t>(found.begin, origins[i].begin);
    found.end = std::max<size_t>(found.end, origins[i].end);
  }
  return found;
}

Aligned repaired(std::string_view original) {
  require(
      original.size() <= size_t{1} << 30, "a text of ", original.size(),
      " bytes is more than a tokenizer takes (1 GiB); cut it into documents");
  Aligned made;
  made.text.reserve(original.size());
  made.origins.reserve(original.size());
  for (size_t at = 0; at < original.size();) {
    const CodePoint found = code_point(original, at);
    const Aligned::Origin origin = {
        static_cast<uint32_t>(at), static_cast<uint32_t>(at + found.size)};
    made.append(found.valid ? original.substr(at, found.size) : "\xEF\xBF\xBD", origin);
    at += found.size;
  }
  return made;
}

}  // namespace theseus::data::text
