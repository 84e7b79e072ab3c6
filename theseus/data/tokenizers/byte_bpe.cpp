#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/text/byte_pairs.h"
#include "theseus/data/text/tokenizer_json.h"

namespace theseus::data::tokenizers {
namespace {

using text::BytePairs;
using text::Pipeline;
using text::Slot;
using text::TokenSettings;
using text::Vocabulary;

constexpr int64_t kMaxFile = int64_t{64} << 20;

std::string words_of(const Pipeline& pipeline, std::string_view file) {
  int64_t size = pipeline.vocabulary->size();
  for (const text::AddedToken& token : pipeline.added) {
    size = std::max(size, token.id + 1);
  }
  return c10::str("byte-level BPE, ", size, ", ", file);
}

void require_model(const Json& model) {
  text::require_known(
      model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  require(
      model.number("dropout", 0) == 0, model.where("dropout"),
      ": random merges are not implemented");
  require(
      model.text("continuing_subword_prefix", "").empty(), model.where("continuing_subword_prefix"),
      ": not implemented for byte-level BPE");
}

void require_decoder(const Json& file) {
  const std::string type =
      file.has("decoder") ? file.object("decoder").text("type") : std::string("none");
  require(
      type == "ByteLevel", file.where("decoder"), ": the decoder ", printable(type),
      " is not implemented for byte-level BPE; it should be ByteLevel");
}

// The top-level ByteLevel obeys tokenizer_config.json, as transformers has it.
void obey_config(const Json& file, const TokenSettings& settings, Pipeline& pipeline) {
  const Json step = file.object("pre_tokenizer");
  const bool here = step.boolean("add_prefix_space", true);
  const bool wanted = settings.flag("add_prefix_space", here);
  if (step.text("type") != "ByteLevel" || wanted == here) {
    return;
  }
  if (wanted) {
    pipeline.splitters.insert(pipeline.splitters.begin(), text::add_prefix_spaces);
  } else {
    pipeline.splitters.erase(pipeline.splitters.begin());
  }
}

std::unique_ptr<Tokenizer> find_json(const Json& file, const std::filesystem::path& directory) {
  if (text::model_type(file) != "BPE") {
    return nullptr;
  }
  const Json model = file.object("model");
  if (model.text("end_of_word_suffix", "") == "</w>" || model.boolean("byte_fallback", false)) {
    return nullptr;  // CLIP's, or sentencepiece's
  }
  require_model(model);
  require(
      model.text("end_of_word_suffix", "").empty(), model.where("end_of_word_suffix"),
      ": not implemented for byte-level BPE");
  require(
      text::read_splitters(file).bytes, file.where("pre_tokenizer"),
      ": BPE without ByteLevel is not implemented");
  require_decoder(file);
  const TokenSettings settings = text::read_token_settings(directory);
  Pipeline pipeline;
  const auto vocabulary =
      std::make_shared<const Vocabulary>(Vocabulary::from_json(model.object("vocab")));
  pipeline.vocabulary = vocabulary;
  text::read_steps(file, settings, pipeline);
  obey_config(file, settings, pipeline);
  BytePairs::Settings pairs;
  pairs.ignore_merges = model.boolean("ignore_merges", false);
  if (model.has("unk_token")) {
    pairs.unknown = vocabulary->find(model.text("unk_token"));
  }
  const auto merges = text::merges_from_json(model, "merges");
  const auto made = std::make_shared<const BytePairs>(vocabulary, merges, pairs, model.where());
  require(
      !model.boolean("fuse_unk", false) || made->missing_bytes() == 0, model.where("fuse_unk"),
      ": not implemented, and the vocabulary lacks ", made->missing_bytes(), " bytes");
  pipeline.model = made;
  pipeline.decode = text::decode_bytes;
  pipeline.words = words_of(pipeline, "tokenizer.json");
  return text::make_tokenizer(std::move(pipeline));
}

// The names that a class of the transformers library has for its tokens.
struct Defaults {
  bool roberta;
  std::string_view begin;
  std::string_view end;
  std::string_view pad;
};

Defaults defaults_of(const TokenSettings& settings, const std::filesystem::path& directory) {
  std::string name = settings.config ? settings.config->text("tokenizer_class", "") : "";
  if (name.ends_with("Fast")) {
    name.resize(name.size() - 4);
  }
  if (name.empty() || name == "GPT2Tokenizer") {
    return {false, "<|endoftext|>", "<|endoftext|>", ""};
  }
  require(
      name == "RobertaTokenizer" || name == "BartTokenizer", directory.string(),
      ": vocab.json and merges.txt of a ", printable(name),
      " are not implemented; save its tokenizer.json beside them");
  return {true, "<s>", "</s>", "<pad>"};
}

// Tokens with a role are special, and cut out of the text.
void add_special(const TokenSettings& settings, const Defaults& defaults, Pipeline& pipeline) {
  const std::vector<std::pair<std::string, std::string_view>> roles = {
      {"bos_token", defaults.begin},
      {"eos_token", defaults.end},
      {"unk_token", defaults.roberta ? "<unk>" : defaults.end},
      {"pad_token", defaults.pad},
      {"mask_token", defaults.roberta ? "<mask>" : ""}};
  for (const auto& role : roles) {
    const std::string name = settings.name(role.first, role.second);
    const auto id = text::find_token(*pipeline.vocabulary, pipeline.added, name);
    const bool before_words = defaults.roberta && role.first == "mask_token";
    if (!name.empty() && id) {
      const text::AddedToken token = {
          .content = name, .id = *id, .special = true, .left_strip = before_words};
      text::join_added(pipeline.added, {token}, "the special tokens");
    }
  }
}

std::unique_ptr<Tokenizer> find_files(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory / "vocab.json") ||
      !std::filesystem::exists(directory / "merges.txt")) {
    return nullptr;
  }
  const auto merges_file = directory / "merges.txt";
  const std::string merges = read_text_file(merges_file, kMaxFile);
  if (merges.find("</w>") != std::string::npos) {
    return nullptr;  // CLIP's
  }
  const TokenSettings settings = text::read_token_settings(directory);
  const Defaults defaults = defaults_of(settings, directory);
  require(
      !settings.flag("add_bos_token", false), directory.string(),
      ": tokenizer_config.json: add_bos_token is not implemented for these files");
  Pipeline pipeline;
  pipeline.vocabulary = std::make_shared<const Vocabulary>(
      Vocabulary::from_json(Json::parse_file(directory / "vocab.json")));
  pipeline.added = settings.added;
  add_special(settings, defaults, pipeline);
  const auto id = [&](const std::string& role, std::string_view fallback) {
    const std::string name = settings.name(role, fallback);
    return text::find_token(*pipeline.vocabulary, pipeline.added, name).value_or(-1);
  };
  pipeline.end = id("eos_token", defaults.end);
  const int64_t pad = id("pad_token", defaults.pad);
  pipeline.padding = pad >= 0 ? pad : std::max<int64_t>(pipeline.end, 0);
  const bool prefix = settings.flag("add_prefix_space", false);
  if (prefix) {
    pipeline.splitters.push_back(text::add_prefix_spaces);
  }
  pipeline.splitters.push_back(text::split_like_gpt2());
  if (defaults.roberta) {
    const Slot begin = {Slot::Kind::kAdded, id("bos_token", defaults.begin), 0};
    const Slot end = {Slot::Kind::kAdded, pipeline.end, 0};
    require(begin.id >= 0 && end.id >= 0, directory.string(), ": <s> or </s> has no id");
    const Slot first = {Slot::Kind::kFirst, 0, 0};
    const Slot second = {Slot::Kind::kSecond, 0, 0};
    pipeline.layout = {{begin, first, end}, {begin, first, end, end, second, end}};
    pipeline.trims = {prefix};
  }
  pipeline.model = std::make_shared<const BytePairs>(
      pipeline.vocabulary, text::merges_from_lines(merges, merges_file.string()),
      BytePairs::Settings{}, merges_file.string());
  pipeline.decode = text::decode_bytes;
  pipeline.words = words_of(pipeline, "vocab.json and merges.txt");
  return text::make_tokenizer(std::move(pipeline));
}

}  // namespace

const TokenizerKind& byte_bpe() {
  static const TokenizerKind kind = {
      "byte-level BPE of GPT-2, RoBERTa, Llama 3 and Qwen: tokenizer.json, or vocab.json with "
      "merges.txt",
      find_json, find_files};
  return kind;
}

}  // namespace theseus::data::tokenizers
