#include "theseus/data/text/split.h"

#include <algorithm>

#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

struct Run {
  Range range;
  bool match;
};

// Matches and what lies between them.
std::vector<Run> runs(const std::vector<Range>& matches, size_t size, bool invert) {
  std::vector<Run> found;
  size_t at = 0;
  for (const Range& match : matches) {
    if (at < match.begin) {
      found.push_back({{at, match.begin}, invert});
    }
    found.push_back({match, !invert});
    at = match.end;
  }
  if (at < size) {
    found.push_back({{at, size}, invert});
  }
  return found;
}

// Joins each run to the one before it where `joins(before, run)`.
template <class Joins>
std::vector<Range> joined(const std::vector<Run>& all, Joins&& joins) {
  std::vector<Range> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i > 0 && joins(all[i - 1], all[i])) {
      out.back().end = all[i].range.end;
    } else {
      out.push_back(all[i].range);
    }
  }
  return out;
}

std::vector<Range> arranged(const std::vector<Run>& all, Matches matches) {
  switch (matches) {
    case Matches::kMergedWithPrevious:
      return joined(all, [](const Run& a, const Run& b) { return b.match && !a.match; });
    case Matches::kMergedWithNext:
      return joined(all, [](const Run& a, const Run& b) { return a.match && !b.match; });
    case Matches::kContiguous:
      return joined(all, [](const Run& a, const Run& b) { return a.match == b.match; });
    case Matches::kRemoved:
    case Matches::kIsolated:
      break;
  }
  std::vector<Range> out;
  for (const Run& run : all) {
    if (matches == Matches::kIsolated || !run.match) {
      out.push_back(run.range);
    }
  }
  return out;
}

bool parts_words(char32_t value) {
  const bool ascii_symbol = (value > 32 && value < 48) || (value > 57 && value < 65) ||
                            (value > 90 && value < 97) || (value > 122 && value < 127);
  return ascii_symbol || is_punctuation(value);
}

}  // namespace

Splitter split_at(std::shared_ptr<const Pattern> pattern, Matches matches, bool invert) {
  return [pattern = std::move(pattern), matches, invert](Words& words) {
    std::vector<Range> out;
    for (const Range& word : words.ranges) {
      const auto text = std::string_view(words.text.text).substr(word.begin, word.size());
      for (const Range& part :
           arranged(runs(pattern->matches(text), text.size(), invert), matches)) {
        if (part.size() > 0) {
          out.push_back({word.begin + part.begin, word.begin + part.end});
        }
      }
    }
    words.ranges = std::move(out);
  };
}

Splitter split_like_gpt2() {
  static const auto pattern = std::make_shared<const Pattern>(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
      "GPT-2's pattern");
  return split_at(pattern, Matches::kIsolated, false);
}

void add_prefix_spaces(Words& words) {
  Words out;
  for (const Range& word : words.ranges) {
    const size_t begin = out.text.text.size();
    if (words.text.text[word.begin] != ' ') {
      out.text.append(" ", words.text.origins[word.begin]);
    }
    out.text.append(words.text, word);
    out.ranges.push_back({begin, out.text.text.size()});
  }
  words = std::move(out);
}

void split_like_bert(Words& words) {
  std::vector<Range> out;
  for (const Range& word : words.ranges) {
    size_t begin = word.begin;
    const auto finish = [&out, &begin](size_t end) {
      if (begin < end) {
        out.push_back({begin, end});
      }
      begin = end;
    };
    for (size_t at = word.begin; at < word.end;) {
      const CodePoint found = code_point(words.text.text, at);
      const bool space = is_space(found.value);
      if (space || parts_words(found.value)) {
        finish(at);
        finish(space ? at : at + found.size);
        begin = at + found.size;
      }
      at += found.size;
    }
    finish(word.end);
  }
  words.ranges = std::move(out);
}

}  // namespace theseus::data::text
