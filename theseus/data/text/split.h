#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "theseus/data/text/aligned.h"
#include "theseus/data/text/pattern.h"

namespace theseus::data::text {

// A text and the words it has been split into so far, from left to right, none empty.
struct Words {
  Aligned text;
  std::vector<Range> ranges;
};

// Steps that split every word further.
using Splitter = std::function<void(Words&)>;

// What becomes of the matches of a pattern.
enum class Matches { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// `invert`: what lies between the matches counts as the matches.
Splitter split_at(std::shared_ptr<const Pattern> pattern, Matches matches, bool invert);
// GPT-2's pattern.
Splitter split_like_gpt2();
// A space before every word that begins with none. It stands for what follows it.
void add_prefix_spaces(Words& words);
// White space parts words and is dropped, punctuation is a word for each character.
void split_like_bert(Words& words);

}  // namespace theseus::data::text
