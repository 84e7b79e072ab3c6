#include "theseus/data/tokenizer.h"

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/text/tokenizer_json.h"

namespace theseus::data {
namespace {

struct FoundTokenizer {
  std::unique_ptr<Tokenizer> tokenizer;
  std::string_view kind;
};

// The one kind for which `find` gives a tokenizer. Two are an error.
template <class Find>
FoundTokenizer only_kind(const std::filesystem::path& directory, Find&& find) {
  FoundTokenizer found;
  for (const Plugin<TokenizerKind>& plugin : all_tokenizers()) {
    std::unique_ptr<Tokenizer> tokenizer = find(*plugin.object);
    if (tokenizer == nullptr) {
      continue;
    }
    require(
        found.tokenizer == nullptr, directory.string(), ": the files fit two kinds of tokenizer, ",
        found.kind, " and ", plugin.name, "; leave only those of the model");
    found = {std::move(tokenizer), plugin.name};
  }
  return found;
}

std::string model_in(const Json& file) {
  const Json model = file.object("model");
  const bool fallback = model.boolean("byte_fallback", false);
  return c10::str(
      "tokenizer.json has a model ", printable(text::model_type(file)),
      fallback ? " with byte_fallback" : "", ", which is not implemented, and there is no ");
}

}  // namespace

std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& directory) {
  return with_context(c10::str("opening the tokenizer of ", directory.string()), [&] {
    require(std::filesystem::is_directory(directory), directory.string(), " is no directory");
    std::string problem = "found no tokenizer: there is no tokenizer.json, ";
    if (const auto path = directory / "tokenizer.json"; std::filesystem::exists(path)) {
      const Json file = Json::parse_file(path);
      FoundTokenizer found = only_kind(directory, [&](const TokenizerKind& kind) {
        return kind.find_json == nullptr ? nullptr : kind.find_json(file, directory);
      });
      if (found.tokenizer != nullptr) {
        return std::move(found.tokenizer);
      }
      problem = model_in(file);
    }
    FoundTokenizer found =
        only_kind(directory, [&](const TokenizerKind& kind) { return kind.find_files(directory); });
    require(
        found.tokenizer != nullptr, directory.string(), ": ", problem,
        "vocab.txt, spiece.model, tokenizer.model, vocab.json with merges.txt or "
        "bpe_simple_vocab_16e6.txt.gz in it");
    return std::move(found.tokenizer);
  });
}

}  // namespace theseus::data
