#include <archive.h>
#include <archive_entry.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/data/text/byte_names.h"
#include "theseus/data/text/byte_pairs.h"
#include "theseus/data/text/html.h"
#include "theseus/data/text/tokenizer_json.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::tokenizers {
namespace {

using text::Aligned;
using text::BytePairs;
using text::Pipeline;
using text::Slot;
using text::TokenSettings;
using text::Vocabulary;

constexpr int64_t kMaxFile = int64_t{64} << 20;
constexpr std::string_view kBegin = "<|startoftext|>";
constexpr std::string_view kEnd = "<|endoftext|>";
constexpr std::string_view kSuffix = "</w>";
constexpr std::string_view kOpenClipFile = "bpe_simple_vocab_16e6.txt.gz";
constexpr size_t kOpenClipMerges = 49152 - 256 - 2;
constexpr std::string_view kWords = R"('s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)";

// The suffix ends a word, so it becomes a space.
std::string decode(const std::vector<std::string>& words) {
  std::string text = text::decode_bytes(words);
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(kSuffix, at), text.size());
    out.append(text, at, next - at);
    out.append(next < text.size() ? " " : "");
    at = next + (next < text.size() ? kSuffix.size() : 0);
  }
  const size_t first = std::min(out.find_first_not_of(' '), out.size());
  return out.substr(first, out.find_last_not_of(' ') + 1 - first);
}

Slot added(int64_t id) {
  return {Slot::Kind::kAdded, id, 0};
}

void add_ends(Pipeline& pipeline, int64_t begin, int64_t end, bool pairs) {
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  const Slot second = {Slot::Kind::kSecond, 0, 0};
  pipeline.layout.single = {added(begin), first, added(end)};
  pipeline.layout.pair.clear();
  if (pairs) {
    pipeline.layout.pair = {added(begin), first, added(end), added(end), second, added(end)};
  }
  pipeline.end = end;
}

std::unique_ptr<Tokenizer> finish(Pipeline pipeline, std::string_view files) {
  pipeline.decode = decode;
  pipeline.words = c10::str("CLIP's BPE, ", pipeline.vocabulary->size(), ", ", files);
  return text::make_tokenizer(std::move(pipeline));
}

std::unique_ptr<Tokenizer> find_json(const Json& file, const std::filesystem::path& directory) {
  if (text::model_type(file) != "BPE") {
    return nullptr;
  }
  const Json model = file.object("model");
  if (model.text("end_of_word_suffix", "") != kSuffix) {
    return nullptr;
  }
  text::require_known(
      model, {"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
              "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  for (const std::string_view key : {"fuse_unk", "byte_fallback", "ignore_merges"}) {
    require(!model.boolean(key, false), model.where(key), ": not implemented for CLIP's BPE");
  }
  require(
      model.number("dropout", 0) == 0 && model.text("continuing_subword_prefix", "").empty(),
      model.where(), ": dropout and continuing_subword_prefix are not implemented");
  require(
      text::read_splitters(file).bytes, file.where("pre_tokenizer"),
      ": CLIP's BPE without ByteLevel is not implemented");
  Pipeline pipeline;
  pipeline.vocabulary =
      std::make_shared<const Vocabulary>(Vocabulary::from_json(model.object("vocab")));
  text::read_steps(file, text::read_token_settings(directory), pipeline);
  const bool named = pipeline.end >= 0;
  if (!named) {
    pipeline.end = pipeline.vocabulary->find(kEnd).value_or(-1);
    pipeline.padding = file.has("padding") ? pipeline.padding : std::max<int64_t>(pipeline.end, 0);
  }
  BytePairs::Settings settings = {.suffix = std::string(kSuffix)};
  if (model.has("unk_token")) {
    settings.unknown = pipeline.vocabulary->find(model.text("unk_token"));
  }
  pipeline.model = std::make_shared<const BytePairs>(
      pipeline.vocabulary, text::merges_from_json(model, "merges"), settings, model.where());
  return finish(std::move(pipeline), "tokenizer.json");
}

// What transformers makes of vocab.json and merges.txt.
std::unique_ptr<Tokenizer> open_pair(
    const std::filesystem::path& directory, const std::string& merges) {
  const TokenSettings settings = text::read_token_settings(directory);
  const std::string where = (directory / "merges.txt").string();
  Pipeline pipeline;
  pipeline.vocabulary = std::make_shared<const Vocabulary>(
      Vocabulary::from_json(Json::parse_file(directory / "vocab.json")));
  const std::string begin_name = settings.name("bos_token", kBegin);
  const std::string end_name = settings.name("eos_token", kEnd);
  const std::string pad_name = settings.name("pad_token", end_name);
  const int64_t begin = pipeline.vocabulary->id(begin_name, where);
  const int64_t end = pipeline.vocabulary->id(end_name, where);
  add_ends(pipeline, begin, end, true);
  pipeline.added = settings.added;
  pipeline.padding = text::find_token(*pipeline.vocabulary, pipeline.added, pad_name).value_or(end);
  const text::AddedToken tokens[] = {
      {.content = begin_name, .id = begin, .special = true, .normalized = true},
      {.content = end_name, .id = end, .special = true}};
  text::join_added(pipeline.added, {tokens[0], tokens[1]}, where);
  const auto spaces = std::make_shared<const text::Pattern>("\\s+", "CLIP's white space");
  pipeline.normalisers = {
      [](const Aligned& in) { return text::unicode_form(in, text::Form::kNfc); },
      [spaces](const Aligned& in) { return text::replaced(in, spaces->matches(in.text), " "); },
      [](const Aligned& in) { return text::lower_case(in); }};
  const auto words = std::make_shared<const text::Pattern>(kWords, "CLIP's pattern");
  pipeline.splitters = {
      text::split_at(words, text::Matches::kRemoved, true), text::split_like_gpt2()};
  const BytePairs::Settings pairs = {.suffix = std::string(kSuffix), .unknown = end};
  pipeline.model = std::make_shared<const BytePairs>(
      pipeline.vocabulary, text::merges_from_lines(merges, where), pairs, where);
  return finish(std::move(pipeline), "vocab.json and merges.txt");
}

std::string gunzip(const std::filesystem::path& path) {
  const std::unique_ptr<archive, int (*)(archive*)> reader(archive_read_new(), archive_read_free);
  archive_read_support_filter_gzip(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  std::string out;
  bool good = archive_read_open_filename(reader.get(), path.c_str(), 1 << 16) == ARCHIVE_OK &&
              archive_read_next_header(reader.get(), &entry) == ARCHIVE_OK;
  while (good) {
    char buffer[1 << 14];
    const auto size = archive_read_data(reader.get(), buffer, sizeof(buffer));
    if (size == 0) {
      return out;
    }
    good = size > 0 && static_cast<int64_t>(out.size()) + size <= kMaxFile;
    out.append(buffer, good ? static_cast<size_t>(size) : 0);
  }
  throw InputError(c10::str(path.string(), ": is not a gzip file of at most 64 MiB"));
}

// The lines after the first, as many as CLIP's vocabulary has room for.
text::Merges open_clip_merges(const std::filesystem::path& path) {
  const std::string text = gunzip(path);
  size_t begin = text.find('\n') + 1;
  size_t end = begin;
  for (size_t i = 0; i < kOpenClipMerges; ++i) {
    end = text.find('\n', end);
    require(
        begin > 0 && end != std::string::npos, path.string(), ": has fewer than ", kOpenClipMerges,
        " merges");
    ++end;
  }
  return text::merges_from_lines(std::string_view(text).substr(begin, end - begin), path.string());
}

std::shared_ptr<const Vocabulary> open_clip_vocabulary(
    const text::Merges& merges, const std::string& where) {
  auto made = std::make_shared<Vocabulary>();
  const auto add = [&](const std::string& word) { made->add(word, made->size(), where); };
  for (const std::string_view suffix : {std::string_view(), kSuffix}) {
    for (const unsigned char byte : text::byte_order()) {
      add(text::byte_names()[byte] + std::string(suffix));
    }
  }
  for (const auto& merge : merges) {
    add(merge.first + merge.second);
  }
  add(std::string(kBegin));
  add(std::string(kEnd));
  return made;
}

// Python's white space: also the separators of ASCII.
bool is_python_space(char32_t value) {
  return text::is_space(value) || (value >= 0x1C && value <= 0x1F);
}

// Single spaces between words, none around them.
Aligned open_clip_spaces(const Aligned& in) {
  Aligned out;
  std::optional<Aligned::Origin> space;
  for (size_t at = 0; at < in.text.size();) {
    const text::CodePoint found = text::code_point(in.text, at);
    if (is_python_space(found.value)) {
      space = space ? space : in.origins[at];
    } else {
      if (space && !out.text.empty()) {
        out.append(" ", *space);
      }
      space.reset();
      out.append(in, {at, at + found.size});
    }
    at += found.size;
  }
  return out;
}

// OpenCLIP's own tokenizer, without the repair of broken encodings by ftfy.
std::unique_ptr<Tokenizer> open_clip(const std::filesystem::path& path) {
  const std::string where = path.string();
  const text::Merges merges = open_clip_merges(path);
  Pipeline pipeline;
  pipeline.vocabulary = open_clip_vocabulary(merges, where);
  const int64_t begin = pipeline.vocabulary->id(kBegin, where);
  const int64_t end = pipeline.vocabulary->id(kEnd, where);
  add_ends(pipeline, begin, end, false);
  pipeline.padding = 0;
  pipeline.normalisers = {
      text::html_unescaped, text::html_unescaped, open_clip_spaces,
      [](const Aligned& in) { return text::lower_case(in, true); }};
  // The special tokens are alternatives of the pattern: in "!<|endoftext|>" there is none.
  const auto words = std::make_shared<const text::Pattern>(
      c10::str("(?i)<\\|startoftext\\|>|<\\|endoftext\\|>|", kWords), "OpenCLIP's pattern");
  pipeline.splitters = {text::split_at(words, text::Matches::kRemoved, true)};
  const BytePairs::Settings pairs = {
      .suffix = std::string(kSuffix), .whole = {std::string(kBegin), std::string(kEnd)}};
  pipeline.model = std::make_shared<const BytePairs>(pipeline.vocabulary, merges, pairs, where);
  // Never looked for, but decode() must know that they are special.
  pipeline.special = {begin, end};
  return finish(std::move(pipeline), kOpenClipFile);
}

std::unique_ptr<Tokenizer> find_files(const std::filesystem::path& directory) {
  const auto merges_file = directory / "merges.txt";
  if (std::filesystem::exists(directory / "vocab.json") && std::filesystem::exists(merges_file)) {
    const std::string merges = read_text_file(merges_file, kMaxFile);
    if (merges.find(kSuffix) != std::string::npos) {
      return open_pair(directory, merges);
    }
  }
  const auto file = directory / kOpenClipFile;
  return std::filesystem::exists(file) ? open_clip(file) : nullptr;
}

}  // namespace

const TokenizerKind& clip_bpe() {
  static const TokenizerKind kind = {
      "CLIP's BPE: tokenizer.json, vocab.json with merges.txt, or OpenCLIP's file of merges",
      find_json, find_files};
  return kind;
}

}  // namespace theseus::data::tokenizers
