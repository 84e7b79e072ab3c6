#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "theseus/data/text/byte_trie.h"
#include "theseus/data/text/piece_file.h"

namespace theseus::data::text {

constexpr std::string_view kSpaceBar = "\xE2\x96\x81";  // how sentencepiece writes a space

// sentencepiece's rewriting of a text: characters by its map, spaces collapsed and written as bars.
class PieceNormaliser {
 public:
  struct Result {
    std::string text;
    std::vector<size_t> places;  // in the original of each byte, and of the end
  };

  // `prefix`: a bar before the text. Throws InputError for a broken map.
  PieceNormaliser(const PieceFile& file, bool prefix, const std::string& where);
  // Of valid UTF-8.
  Result run(std::string_view text) const;

 private:
  struct Step {
    std::string_view text;  // what the beginning becomes
    size_t size;            // how much of it was read
  };

  void read_map(std::string_view map, const std::string& where);
  Step step(std::string_view text) const;
  std::pair<size_t, uint32_t> longest_in_map(std::string_view text) const;

  std::vector<uint32_t> units_;  // a double-array trie as darts-clone writes it
  std::string replacements_;     // strings that end with a zero byte
  ByteTrie user_defined_;        // never rewritten
  bool prefix_;
  bool strip_spaces_;
};

}  // namespace theseus::data::text
