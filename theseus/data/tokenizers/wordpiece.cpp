#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/text/tokenizer_json.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::tokenizers {
namespace {

using text::Pipeline;
using text::Slot;
using text::TokenSettings;
using text::Vocabulary;

constexpr int64_t kMaxFile = int64_t{64} << 20;

// From left to right the longest piece that the vocabulary has; one unknown token for the whole word when
// there is none somewhere or the word is too long.
class WordPieces : public text::WordModel {
 public:
  struct Settings {
    std::string prefix = "##";  // of pieces that do not begin a word
    int64_t unknown = 0;
    int64_t longest = 100;  // characters of a word
  };

  WordPieces(std::shared_ptr<const Vocabulary> vocabulary, Settings settings)
      : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)) {}

  void encode(std::string_view word, std::vector<text::Piece>& out) const override {
    const size_t first = out.size();
    bool known = characters(word) <= settings_.longest;
    for (size_t at = 0; known && at < word.size();) {
      const size_t end = append_longest(word, at, out);
      known = end > at;
      at = end;
    }
    if (!known) {
      out.resize(first);
      out.push_back({settings_.unknown, {0, word.size()}});
    }
  }

 private:
  static int64_t characters(std::string_view word) {
    return std::count_if(word.begin(), word.end(), [](char c) { return (c & 0xC0) != 0x80; });
  }

  // Where the piece ends; `begin` when no piece fits.
  size_t append_longest(std::string_view word, size_t begin, std::vector<text::Piece>& out) const {
    std::string piece = begin > 0 ? settings_.prefix : "";
    const size_t prefix = piece.size();
    piece.append(word.substr(begin, vocabulary_->longest()));
    for (; piece.size() > prefix; piece.pop_back()) {
      if (const auto id = vocabulary_->find(piece)) {
        const size_t end = begin + piece.size() - prefix;
        out.push_back({*id, {begin, end}});
        return end;
      }
    }
    return begin;
  }

  std::shared_ptr<const Vocabulary> vocabulary_;
  Settings settings_;
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

std::string tidied(std::string text) {
  const std::pair<std::string_view, std::string_view> rules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& rule : rules) {
    replace_all(text, rule.first, rule.second);
  }
  return text;
}

std::string decode(const std::vector<std::string>& words, const std::string& prefix, bool cleanup) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (i > 0) {
      word = word.starts_with(prefix) ? word.substr(prefix.size()) : " " + word;
    }
    out.append(cleanup ? tidied(word) : word);
  }
  return out;
}

void set_decoder(Pipeline& pipeline, const std::string& prefix, bool cleanup) {
  pipeline.decode = [prefix, cleanup](const std::vector<std::string>& words) {
    return decode(words, prefix, cleanup);
  };
}

// tokenizer_config.json has the last word, as in transformers.
text::BertSettings obey_config(text::BertSettings bert, const TokenSettings& settings) {
  bert.lower = settings.flag("do_lower_case", bert.lower);
  bert.strip_accents = settings.flag("strip_accents", bert.strip_accents);
  bert.ideographs = settings.flag("tokenize_chinese_chars", bert.ideographs);
  return bert;
}

std::unique_ptr<Tokenizer> find_json(const Json& file, const std::filesystem::path& directory) {
  if (text::model_type(file) != "WordPiece") {
    return nullptr;
  }
  const Json model = file.object("model");
  text::require_known(
      model,
      {"type", "unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"});
  const TokenSettings settings = text::read_token_settings(directory);
  Pipeline pipeline;
  pipeline.vocabulary =
      std::make_shared<const Vocabulary>(Vocabulary::from_json(model.object("vocab")));
  text::read_steps(file, settings, pipeline);
  require(
      !text::read_splitters(file).bytes, file.where("pre_tokenizer"),
      ": ByteLevel with WordPiece is not implemented");
  if (file.has("normalizer") && file.object("normalizer").text("type") == "BertNormalizer") {
    const auto bert = obey_config(text::read_bert_settings(file.object("normalizer")), settings);
    pipeline.normalisers = {[bert](const text::Aligned& in) { return text::bert_form(in, bert); }};
  }
  WordPieces::Settings pieces;
  pieces.prefix = model.text("continuing_subword_prefix", "##");
  pieces.unknown = pipeline.vocabulary->id(model.text("unk_token", "[UNK]"), model.where());
  pieces.longest = model.integer("max_input_chars_per_word", 100);
  require(
      pieces.longest > 0 && pieces.longest <= 10'000, model.where("max_input_chars_per_word"),
      ": expected 1 to 10000, found ", pieces.longest);
  pipeline.model = std::make_shared<const WordPieces>(pipeline.vocabulary, pieces);
  bool cleanup = true;
  if (file.has("decoder")) {
    const Json decoder = file.object("decoder");
    require(
        decoder.text("type") == "WordPiece", decoder.where(), ": the decoder ",
        printable(decoder.text("type")), " is not implemented for WordPiece");
    pieces.prefix = decoder.text("prefix", pieces.prefix);
    cleanup = decoder.boolean("cleanup", true);
  }
  set_decoder(pipeline, pieces.prefix, cleanup);
  if (pipeline.end < 0) {
    pipeline.end = pipeline.vocabulary->find("[SEP]").value_or(-1);
    pipeline.padding = pipeline.vocabulary->find("[PAD]").value_or(0);
  }
  pipeline.words = c10::str("WordPiece, ", pipeline.vocabulary->size(), ", tokenizer.json");
  return text::make_tokenizer(std::move(pipeline));
}

void require_bert(const TokenSettings& settings, const std::filesystem::path& directory) {
  const std::string name =
      settings.config ? settings.config->text("tokenizer_class", "BertTokenizer") : "BertTokenizer";
  for (const std::string_view known : {"Bert", "DistilBert", "Electra", "LayoutLM", "MobileBert"}) {
    if (name == c10::str(known, "Tokenizer") || name == c10::str(known, "TokenizerFast")) {
      return;
    }
  }
  throw InputError(c10::str(
      directory.string(), ": the vocab.txt of a ", printable(name),
      " is not implemented; save its tokenizer.json beside it"));
}

std::unique_ptr<Tokenizer> find_files(const std::filesystem::path& directory) {
  const auto path = directory / "vocab.txt";
  if (!std::filesystem::exists(path)) {
    return nullptr;
  }
  const TokenSettings settings = text::read_token_settings(directory);
  require_bert(settings, directory);
  require(
      settings.flag("do_basic_tokenize", true), directory.string(),
      ": tokenizer_config.json: do_basic_tokenize false is not implemented");
  Pipeline pipeline;
  pipeline.vocabulary = std::make_shared<const Vocabulary>(
      Vocabulary::from_lines(read_text_file(path, kMaxFile), path.string()));
  const auto id = [&](const std::string& role, std::string_view fallback) {
    const std::string name = settings.name(role, fallback);
    const int64_t found = pipeline.vocabulary->id(name, path.string());
    text::join_added(
        pipeline.added, {{.content = name, .id = found, .special = true}}, path.string());
    return found;
  };
  pipeline.padding = id("pad_token", "[PAD]");
  WordPieces::Settings pieces;
  pieces.unknown = id("unk_token", "[UNK]");
  const int64_t begin = id("cls_token", "[CLS]");
  pipeline.end = id("sep_token", "[SEP]");
  id("mask_token", "[MASK]");
  text::join_added(pipeline.added, settings.added, path.string());
  text::BertSettings bert;
  bert.lower = settings.flag("do_lower_case", true);
  bert.strip_accents = bert.lower;
  bert = obey_config(bert, settings);
  pipeline.normalisers = {[bert](const text::Aligned& in) { return text::bert_form(in, bert); }};
  pipeline.splitters = {text::split_like_bert};
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  const Slot cls = {Slot::Kind::kAdded, begin, 0};
  const Slot sep = {Slot::Kind::kAdded, pipeline.end, 0};
  const Slot second = {Slot::Kind::kSecond, 0, 1};
  const Slot last = {Slot::Kind::kAdded, pipeline.end, 1};
  pipeline.layout = {{cls, first, sep}, {cls, first, sep, second, last}};
  pipeline.model = std::make_shared<const WordPieces>(pipeline.vocabulary, pieces);
  set_decoder(pipeline, pieces.prefix, true);
  pipeline.words = c10::str("WordPiece, ", pipeline.vocabulary->size(), ", vocab.txt");
  return text::make_tokenizer(std::move(pipeline));
}

}  // namespace

const TokenizerKind& wordpiece() {
  static const TokenizerKind kind = {
      "BERT's WordPiece: tokenizer.json, or vocab.txt", find_json, find_files};
  return kind;
}

}  // namespace theseus::data::tokenizers
