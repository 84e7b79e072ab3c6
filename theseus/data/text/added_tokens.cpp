#include "theseus/data/text/added_tokens.h"

#include <algorithm>

#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

bool stands_alone(std::string_view text, Range range) {
  const bool left = range.begin == 0 || !is_word(code_point(text, before(text, range.begin)).value);
  return left && (range.end == text.size() || !is_word(code_point(text, range.end).value));
}

size_t strip_left(std::string_view text, size_t at, size_t stop) {
  while (at > stop) {
    const size_t previous = before(text, at);
    if (!is_space(code_point(text, previous).value)) {
      break;
    }
    at = previous;
  }
  return at;
}

size_t strip_right(std::string_view text, size_t at) {
  while (at < text.size()) {
    const CodePoint next = code_point(text, at);
    if (!is_space(next.value)) {
      break;
    }
    at += next.size;
  }
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (size_t i = 0; i < tokens_.size(); ++i) {
    if (!tokens_[i].content.empty()) {
      by_first_byte_[static_cast<uint8_t>(tokens_[i].content[0])].push_back(i);
    }
  }
  for (std::vector<size_t>& list : by_first_byte_) {
    std::stable_sort(list.begin(), list.end(), [this](size_t a, size_t b) {
      return tokens_[a].content.size() > tokens_[b].content.size();
    });
  }
}

std::optional<size_t> AddedTokens::token_at(std::string_view text, size_t at) const {
  for (const size_t i : by_first_byte_[static_cast<uint8_t>(text[at])]) {
    if (text.substr(at).starts_with(tokens_[i].content)) {
      return i;
    }
  }
  return std::nullopt;
}

std::vector<AddedTokens::Part> AddedTokens::cut(std::string_view text) const {
  std::vector<Part> parts;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const std::optional<size_t> found = token_at(text, at);
    if (!found) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[*found];
    Range range = {at, at + token.content.size()};
    at = range.end;  // also when it is not taken: a match hides what overlaps it
    if (token.single_word && !stands_alone(text, range)) {
      continue;
    }
    if (token.left_strip) {
      range.begin = strip_left(text, range.begin, done);
    }
    if (token.right_strip) {
      range.end = strip_right(text, range.end);
      at = range.end;
    }
    if (done < range.begin) {
      parts.push_back({{done, range.begin}, std::nullopt});
    }
    parts.push_back({range, found});
    done = range.end;
  }
  if (done < text.size()) {
    parts.push_back({{done, text.size()}, std::nullopt});
  }
  return parts;
}

}  // namespace theseus::data::text
