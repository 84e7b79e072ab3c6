#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "theseus/data/text/word_model.h"
#include "theseus/data/tokenizer.h"

namespace theseus::data::text {

// What a finished sequence looks like: tokens that are added, and where the texts go.
struct Slot {
  enum class Kind { kAdded, kFirst, kSecond };
  Kind kind = Kind::kFirst;
  int64_t id = 0;  // of what is added
  int64_t type = 0;
};

struct Layout {
  std::vector<Slot> single;
  std::vector<Slot> pair;  // empty: pairs are refused

  // The texts one after the other, nothing added.
  static Layout plain();
};

// Puts one or two texts (`second` null: one) together, cut to `longest` ids (0: not cut). Of a pair the
// longer is cut to the shorter's length, then both; an odd one out is left to the one that was longer,
// or to the second. Throws InputError when `longest` has no room for what is added.
Encoding assemble(
    const Layout& layout,
    const std::vector<Piece>& first,
    const std::vector<Piece>* second,
    int64_t longest);

}  // namespace theseus::data::text
