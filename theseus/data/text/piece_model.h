#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "theseus/data/text/byte_trie.h"
#include "theseus/data/text/piece_file.h"
#include "theseus/data/text/piece_normaliser.h"
#include "theseus/data/text/word_model.h"

namespace theseus::data::text {

// A model of sentencepiece: unigram (the best sum of scores) or BPE (the best score of neighbours first).
// Threads may share one.
class PieceModel {
 public:
  // `prefix`: whether a text begins with a space where the file says so.
  PieceModel(std::string_view bytes, bool prefix, const std::string& where);
  PieceModel(const PieceModel&) = delete;
  PieceModel& operator=(const PieceModel&) = delete;

  // Pieces with their ranges in `text`, which is valid UTF-8. Neighbours that are unknown are one piece.
  // The bytes of a character that has no piece all have the character's range.
  std::vector<Piece> encode(std::string_view text) const;
  // Of ids of pieces; control pieces are nothing, unknown ones a mark.
  std::string decode(const std::vector<int64_t>& ids) const;

  int64_t size() const { return static_cast<int64_t>(file_.entries.size()); }
  int64_t unknown() const { return unknown_; }
  // The id of a control piece by the name the file gives it, or -1.
  int64_t begin() const { return control(file_.begin_name); }
  int64_t end() const { return control(file_.end_name); }
  int64_t padding() const { return control(file_.padding_name); }
  // The id of an ordinary piece, or -1.
  int64_t find(std::string_view piece) const;

 private:
  struct Symbol;
  class Joining;

  int64_t control(const std::string& name) const;
  void index(const std::string& where);
  std::vector<Piece> best_sum(std::string_view text) const;
  std::vector<Piece> best_pairs(std::string_view text) const;
  void append_bytes(std::string_view bytes, Range range, std::vector<Piece>& out) const;

  PieceFile file_;
  PieceNormaliser normaliser_;
  std::unordered_map<std::string_view, int32_t> ids_;  // of what may be found in a text
  ByteTrie trie_;                                      // the same, without unused ones
  ByteTrie user_defined_;
  std::array<int32_t, 256> bytes_;
  int32_t unknown_ = 0;
  float unknown_score_ = 0;
  float best_score_ = 0;
};

}  // namespace theseus::data::text
