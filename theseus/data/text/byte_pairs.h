#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "theseus/data/text/vocabulary.h"
#include "theseus/data/text/word_model.h"

namespace theseus::data::text {

using Merges = std::vector<std::pair<std::string, std::string>>;

// "a b" a line, as in merges.txt; a first line that begins with #version is left out.
Merges merges_from_lines(std::string_view text, const std::string& where);
// A list of "a b" or of ["a", "b"].
Merges merges_from_json(const Json& model, std::string_view key);

// Byte pair encoding over bytes: of all neighbours the pair that comes first in the list is merged,
// the leftmost first, until none is left. n log n for a word of n bytes.
class BytePairs : public WordModel {
 public:
  struct Settings {
    std::string suffix;              // of the last byte's name: CLIP's "</w>"
    std::vector<std::string> whole;  // names of words that are taken as they are
    bool ignore_merges = false;      // every word that is in the vocabulary is taken as it is
    std::optional<int64_t> unknown;  // for bytes without a name in the vocabulary; none: dropped
  };

  // Throws InputError for a merge whose parts or result are not in the vocabulary.
  BytePairs(
      std::shared_ptr<const Vocabulary> vocabulary,
      const Merges& merges,
      Settings settings,
      const std::string& where);

  void encode(std::string_view word, std::vector<Piece>& out) const override;
  // Names of bytes that the vocabulary does not have.
  size_t missing_bytes() const;

 private:
  struct Merge {
    uint32_t rank;
    int32_t id;
  };
  struct Symbol;
  struct Candidate;
  class Merging;

  bool encode_whole(std::string_view word, std::vector<Piece>& out) const;
  const Merge* find_merge(int32_t left, int32_t right) const;

  std::shared_ptr<const Vocabulary> vocabulary_;
  Settings settings_;
  std::array<int32_t, 256> bytes_;  // -1: not in the vocabulary
  std::array<int32_t, 256> last_;   // with the suffix
  std::unordered_map<uint64_t, Merge> merges_;
  std::unordered_map<std::string, int64_t> whole_;
};

}  // namespace theseus::data::text
