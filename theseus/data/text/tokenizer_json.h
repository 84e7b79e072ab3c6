#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/base/json.h"
#include "theseus/data/text/pipeline.h"
#include "theseus/data/text/token_settings.h"

namespace theseus::data::text {

// tokenizer.json as the `tokenizers` library writes it. Everything here throws InputError for a part
// that is not implemented, naming it.

// "BPE", "WordPiece", ...; old files of GPT-2 do not say, but have merges.
std::string model_type(const Json& file);
// Refuses keys of an object that are not among those known.
void require_known(const Json& object, const std::vector<std::string_view>& known);
// The objects of a list.
std::vector<Json> objects(const Json& parent, std::string_view key);

std::vector<Normaliser> read_normalisers(const Json& file);

// Of a BertNormalizer.
BertSettings read_bert_settings(const Json& step);

struct SplitSteps {
  std::vector<Splitter> splitters;
  bool bytes = false;  // the words are bytes in the end (ByteLevel)
};
SplitSteps read_splitters(const Json& file);
// Replaces the layout and the trims.
void read_post_processor(const Json& file, Pipeline& pipeline);

// Everything but the model and `decode`: added tokens, the steps before and after, padding and end.
// `directory` is for the settings beside the file. Expects the vocabulary to be set.
void read_steps(const Json& file, const TokenSettings& settings, Pipeline& pipeline);

}  // namespace theseus::data::text
