#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "theseus/base/plugin.h"

namespace theseus::data {

struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> types;  // 0, and 1 for the second of a pair
  // Bytes of the text that each token stands for (of its own text in a pair); empty for what was added.
  std::vector<std::pair<int64_t, int64_t>> spans;
  bool truncated = false;
};

// Text to the ids a model was trained on, with the tokens its own library adds.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // At most `longest` ids (0: no limit), cut as the original does: the longer of a pair first, added
  // tokens kept. Invalid UTF-8 becomes U+FFFD. `second` null: not a pair.
  virtual Encoding encode(
      std::string_view first, const std::string_view* second, int64_t longest) const = 0;
  virtual std::string decode(const std::vector<int64_t>& ids) const = 0;  // without added tokens
  virtual int64_t vocabulary() const = 0;                                 // largest id + 1
  virtual int64_t padding() const = 0;                                    // id that fills batches
  virtual int64_t end() const = 0;        // id that ends a text, or -1
  virtual std::string words() const = 0;  // "WordPiece, 30522, vocab.txt": for plans and records
};

// One kind of tokenizer.
struct TokenizerKind {
  std::string_view summary;
  // Null when the directory has no files of this kind. Throws InputError when it has and they are wrong.
  std::unique_ptr<Tokenizer> (*find)(const std::filesystem::path& directory);
};

std::span<const Plugin<TokenizerKind>> all_tokenizers();

// From the files of a model's directory: tokenizer.json, vocab.txt, spiece.model or tokenizer.model,
// merges.txt with vocab.json, or CLIP's bpe_simple_vocab_16e6.txt.gz. Throws InputError naming what was
// looked for when there is none, and for settings that are not implemented.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& directory);

}  // namespace theseus::data
