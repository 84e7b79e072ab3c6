#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "theseus/base/json.h"
#include "theseus/base/plugin.h"

namespace theseus::data {

struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> types;  // 0, and 1 for the second of a pair
  // Bytes of the text that each token stands for (of its own text in a pair); 0, 0 for what was added.
  // They begin and end at characters: tokens that share a character's bytes all have the whole of it.
  std::vector<std::pair<int64_t, int64_t>> spans;
  int64_t second = -1;  // where the second text of a pair begins among the ids; -1: not a pair
  bool truncated = false;
};

// Text to the ids a model was trained on, with the tokens its own library adds.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // At most `longest` ids (0: no limit), cut as the original does: the longer of a pair first, added
  // tokens kept. Invalid UTF-8 becomes U+FFFD. `second` null: not a pair. Throws InputError when
  // `longest` has no room for what is added, and for a pair where there are none. Threads may share a
  // tokenizer.
  virtual Encoding encode(
      std::string_view first, const std::string_view* second, int64_t longest) const = 0;
  // Without special tokens. Throws InputError for an id that no token has.
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;
  virtual int64_t vocabulary() const = 0;  // largest id + 1
  virtual int64_t padding() const = 0;     // id that fills batches; end() or 0 where none is named
  virtual int64_t end() const = 0;         // id that ends a text, or -1
  virtual std::string words() const = 0;   // "WordPiece, 30522, vocab.txt": for plans and records
};

// One kind of tokenizer. Both functions give null for files that are not of this kind, and throw
// InputError for files that are but cannot be used: broken, or with settings that are not implemented.
struct TokenizerKind {
  std::string_view summary;
  // From a tokenizer.json, which is read once for all kinds, and the settings beside it in `directory`.
  // A null pointer: this kind has no such file.
  std::unique_ptr<Tokenizer> (*find_json)(const Json& file, const std::filesystem::path& directory);
  // From files of older libraries.
  std::unique_ptr<Tokenizer> (*find_files)(const std::filesystem::path& directory);
};

std::span<const Plugin<TokenizerKind>> all_tokenizers();

// From the files of a model's directory: tokenizer.json where a kind knows its model, otherwise
// vocab.txt, spiece.model or tokenizer.model, merges.txt with vocab.json, or CLIP's
// bpe_simple_vocab_16e6.txt.gz. Throws InputError naming what was looked for when there is none, naming
// both kinds when two find files, and for settings that are not implemented.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& directory);

}  // namespace theseus::data
