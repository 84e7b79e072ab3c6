#include "theseus/data/text/pipeline.h"

#include <algorithm>
#include <unordered_map>

#include "theseus/base/error.h"
#include "theseus/data/text/byte_names.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

constexpr char32_t kSpaceName = 0x120;  // how byte-level vocabularies write a space

struct Blanks {
  size_t leading = 0;
  size_t trailing = 0;
  bool all = true;
};

Blanks blanks_of(std::string_view word) {
  Blanks found;
  for (size_t at = 0; at < word.size();) {
    const CodePoint next = code_point(word, at);
    const bool blank = next.value == kSpaceName || is_space(next.value);
    found.all = found.all && blank;
    found.leading += found.all ? 1 : 0;
    found.trailing = blank ? found.trailing + 1 : 0;
    at += next.size;
  }
  return found;
}

// Only what is white space in the text: a prefix that was added has no place in it. `keep_one`: one
// blank at the beginning stays.
void trim(std::string_view original, Blanks blanks, bool keep_one, Range& range) {
  const bool here = range.begin < range.end && is_space(code_point(original, range.begin).value);
  if (blanks.all && !here) {  // the prefix alone
    (keep_one ? range.end : range.begin) = keep_one ? range.begin : range.end;
    return;
  }
  blanks.leading -= keep_one && blanks.leading > 0 ? 1 : 0;
  for (; blanks.leading > 0 && range.begin < range.end; --blanks.leading) {
    const CodePoint first = code_point(original, range.begin);
    if (!is_space(first.value)) {
      break;
    }
    range.begin += first.size;
  }
  for (; blanks.trailing > 0 && range.begin < range.end; --blanks.trailing) {
    const size_t last = before(original, range.end);
    if (!is_space(code_point(original, last).value)) {
      break;
    }
    range.end = last;
  }
}

class PipelineTokenizer : public Tokenizer {
 public:
  explicit PipelineTokenizer(Pipeline pipeline)
      : parts_(std::move(pipeline)), raw_(with(false)), normalised_(with(true)) {
    for (const AddedToken& token : parts_.added) {
      added_by_id_[token.id] = &token;
      size_ = std::max(size_, token.id + 1);
    }
    size_ = std::max(size_, parts_.vocabulary->size());
  }

  Encoding encode(
      std::string_view first, const std::string_view* second, int64_t longest) const override {
    const std::vector<Piece> pieces = pieces_of(first);
    if (second == nullptr) {
      return assemble(parts_.layout, pieces, nullptr, longest);
    }
    const std::vector<Piece> others = pieces_of(*second);
    return assemble(parts_.layout, pieces, &others, longest);
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<std::string> words;
    for (const int64_t id : ids) {
      const auto added = added_by_id_.find(id);
      const auto& others = parts_.special;
      const bool special = added != added_by_id_.end()
                               ? added->second->special
                               : std::find(others.begin(), others.end(), id) != others.end();
      if (!special) {
        words.push_back(word(id));
      }
    }
    return parts_.decode(words);
  }

  int64_t vocabulary() const override { return size_; }
  int64_t padding() const override { return parts_.padding; }
  int64_t end() const override { return parts_.end; }
  std::string words() const override { return parts_.words; }

 private:
  // Tokens that are looked for in the normalised text are normalised themselves.
  AddedTokens with(bool normalized) const {
    std::vector<AddedToken> chosen;
    for (const AddedToken& token : parts_.added) {
      if (token.normalized == normalized) {
        chosen.push_back(token);
        chosen.back().content =
            normalized ? normal_form(repaired(token.content)).text : token.content;
      }
    }
    return AddedTokens(std::move(chosen));
  }

  Aligned normal_form(Aligned text) const {
    for (const Normaliser& step : parts_.normalisers) {
      text = step(text);
    }
    return text;
  }

  const std::string& word(int64_t id) const {
    const auto added = added_by_id_.find(id);
    if (added != added_by_id_.end()) {
      return added->second->content;
    }
    const std::string* found = parts_.vocabulary->word(id);
    require(found != nullptr, "the tokenizer (", parts_.words, ") has no token ", id);
    return *found;
  }

  std::vector<Piece> pieces_of(std::string_view original) const {
    const Aligned text = repaired(original);
    std::vector<Piece> out;
    for (const AddedTokens::Part& part : raw_.cut(text.text)) {
      if (part.token) {
        out.push_back({raw_.tokens()[*part.token].id, text.origin(part.range)});
      } else {
        append_ordinary(normal_form(text.slice(part.range)), out);
      }
    }
    for (const bool keep_one : parts_.trims) {
      for (size_t i = 0; i < out.size(); ++i) {
        Range& range = out[i].range;
        const bool first = i == 0 || range.begin == 0;
        // Added tokens may have white space around them that is not in their names.
        const bool added = added_by_id_.contains(out[i].id);
        const Blanks blanks = blanks_of(
            added ? original.substr(range.begin, range.size()) : std::string_view(word(out[i].id)));
        trim(original, blanks, keep_one && first, range);
      }
    }
    return out;
  }

  void append_ordinary(const Aligned& text, std::vector<Piece>& out) const {
    for (const AddedTokens::Part& part : normalised_.cut(text.text)) {
      if (part.token) {
        out.push_back({normalised_.tokens()[*part.token].id, text.origin(part.range)});
        continue;
      }
      Words words = {text.slice(part.range), {{0, part.range.size()}}};
      for (const Splitter& split : parts_.splitters) {
        split(words);
      }
      append_words(words, out);
    }
  }

  void append_words(const Words& words, std::vector<Piece>& out) const {
    for (const Range& range : words.ranges) {
      const size_t first = out.size();
      parts_.model->encode(
          std::string_view(words.text.text).substr(range.begin, range.size()), out);
      for (size_t i = first; i < out.size(); ++i) {
        const Range& piece = out[i].range;
        out[i].range = words.text.origin({range.begin + piece.begin, range.begin + piece.end});
      }
    }
  }

  Pipeline parts_;
  AddedTokens raw_;
  AddedTokens normalised_;
  std::unordered_map<int64_t, const AddedToken*> added_by_id_;
  int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(Pipeline pipeline) {
  return std::make_unique<PipelineTokenizer>(std::move(pipeline));
}

std::string decode_bytes(const std::vector<std::string>& words) {
  std::string bytes;
  for (const std::string& word : words) {
    bytes.append(from_byte_names(word));
  }
  return repaired(bytes).text;
}

}  // namespace theseus::data::text
