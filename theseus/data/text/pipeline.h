#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "theseus/data/text/added_tokens.h"
#include "theseus/data/text/assemble.h"
#include "theseus/data/text/normalise.h"
#include "theseus/data/text/split.h"
#include "theseus/data/text/vocabulary.h"
#include "theseus/data/text/word_model.h"
#include "theseus/data/tokenizer.h"

namespace theseus::data::text {

// The steps of a tokenizer in the order in which the `tokenizers` library takes them.
struct Pipeline {
  std::vector<AddedToken> added;
  std::vector<int64_t> special;  // more ids that decode() leaves out
  std::vector<Normaliser> normalisers;
  std::vector<Splitter> splitters;
  std::shared_ptr<const Vocabulary> vocabulary;
  std::shared_ptr<const WordModel> model;
  // Spaces at the ends of a token are no part of its span; once for each entry. The entry: one space at
  // the beginning of the text stays.
  std::vector<bool> trims;
  Layout layout = Layout::plain();
  // Words of the vocabulary to text.
  std::function<std::string(const std::vector<std::string>&)> decode;
  int64_t padding = 0;
  int64_t end = -1;
  std::string words;
};

std::unique_ptr<Tokenizer> make_tokenizer(Pipeline pipeline);

// The bytes behind the words of a byte-level vocabulary, U+FFFD for what is not UTF-8.
std::string decode_bytes(const std::vector<std::string>& words);

}  // namespace theseus::data::text
