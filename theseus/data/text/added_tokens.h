#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/data/text/aligned.h"

namespace theseus::data::text {

// A token that is cut out of the text before anything else is done with it.
struct AddedToken {
  std::string content;
  int64_t id = 0;
  bool special = false;      // left out by decode()
  bool left_strip = false;   // takes the white space before it along
  bool right_strip = false;  // and behind it
  bool single_word = false;  // only where no letter or digit touches it
  bool normalized = false;   // looked for in the normalised text
};

// Looks for added tokens: the leftmost, and of those the longest.
class AddedTokens {
 public:
  struct Part {
    Range range;
    std::optional<size_t> token;  // place in the list given; none: ordinary text
  };

  // Those whose content is empty are never found.
  explicit AddedTokens(std::vector<AddedToken> tokens);

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  // Ranges that cover the text from left to right.
  std::vector<Part> cut(std::string_view text) const;

 private:
  std::optional<size_t> token_at(std::string_view text, size_t at) const;

  std::vector<AddedToken> tokens_;
  std::array<std::vector<size_t>, 256> by_first_byte_;  // longest first
};

}  // namespace theseus::data::text
