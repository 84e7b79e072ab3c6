#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "theseus/data/text/aligned.h"

namespace theseus::data::text {

inline constexpr int32_t kNone = -1;  // in place of an id or of a place in the word

struct Piece {
  int64_t id = 0;
  Range range;  // of the word, or of the text it is in
};

// Turns one word into pieces of the vocabulary. Threads may share one.
class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the pieces from left to right; ranges count from the beginning of the word.
  virtual void encode(std::string_view word, std::vector<Piece>& out) const = 0;
};

}  // namespace theseus::data::text
