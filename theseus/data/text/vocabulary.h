#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "theseus/base/json.h"

namespace theseus::data::text {

// The words of a model with their ids. Copies hold no other memory.
class Vocabulary {
 public:
  // {"word": id, ...}. Throws InputError for an id that is negative, above 2^24 or used twice.
  static Vocabulary from_json(const Json& words);
  // One word a line, numbered from 0. A word that comes twice has the later id.
  static Vocabulary from_lines(std::string_view text, const std::string& where);

  void add(const std::string& word, int64_t id, const std::string& where);
  std::optional<int64_t> find(std::string_view word) const;
  // Throws InputError naming the word.
  int64_t id(std::string_view word, const std::string& where) const;
  // Null when no word has this id.
  const std::string* word(int64_t id) const;
  int64_t size() const { return static_cast<int64_t>(words_.size()); }  // largest id + 1
  size_t longest() const { return longest_; }                           // bytes of a word

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };

  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> ids_;
  std::vector<std::optional<std::string>> words_;
  size_t longest_ = 0;
};

}  // namespace theseus::data::text
