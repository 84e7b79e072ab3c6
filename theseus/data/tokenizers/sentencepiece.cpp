#include <sentencepiece_processor.h>
#include <unordered_map>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/text/assemble.h"
#include "theseus/data/text/normalise.h"
#include "theseus/data/text/pattern.h"
#include "theseus/data/text/token_settings.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::tokenizers {
namespace {

using text::AddedToken;
using text::Aligned;
using text::Piece;
using text::Range;
using text::Slot;
using text::TokenSettings;
using Processor = ::sentencepiece::SentencePieceProcessor;

constexpr int64_t kMaxFile = int64_t{256} << 20;
constexpr size_t kLongRun = 4096;
constexpr std::string_view kBar = "\xE2\x96\x81";  // how sentencepiece writes a space
// Later fields of a message win: add_dummy_prefix = false in the normaliser's settings.
constexpr std::string_view kNoPrefix("\x1A\x02\x18\x00", 4);

struct Settings {
  std::vector<AddedToken> added;
  text::Layout layout;
  // transformers before 4.30, and since then where the settings say so: every part between special
  // tokens begins with a space, not only the first.
  bool legacy = true;
  std::string unknown;
  int64_t padding = 0;
  int64_t end = -1;
  std::string file;
};

class SentencePieceTokenizer : public Tokenizer {
 public:
  SentencePieceTokenizer(std::shared_ptr<const Processor> processor, Settings settings)
      : processor_(std::move(processor)),
        settings_(std::move(settings)),
        added_(settings_.added),
        bars_(kBar, "sentencepiece's mark of a space") {
    if (!settings_.legacy) {
      unknown_pieces_ = processor_->EncodeAsImmutableProto(settings_.unknown).pieces_size();
    }
  }

  Encoding encode(
      std::string_view first, const std::string_view* second, int64_t longest) const override {
    const std::vector<Piece> pieces = pieces_of(first);
    if (second == nullptr) {
      return assemble(settings_.layout, pieces, nullptr, longest);
    }
    const std::vector<Piece> others = pieces_of(*second);
    return assemble(settings_.layout, pieces, &others, longest);
  }

  std::string decode(const std::vector<int64_t>& ids) const override {
    std::vector<int> kept;
    for (const int64_t id : ids) {
      require(id >= 0 && id < vocabulary(), "the tokenizer (", words(), ") has no token ", id);
      const bool special = std::any_of(
          settings_.added.begin(), settings_.added.end(),
          [id](const AddedToken& token) { return token.id == id; });
      if (!special) {
        kept.push_back(static_cast<int>(id));
      }
    }
    return processor_->DecodeIds(kept);
  }

  int64_t vocabulary() const override {
    int64_t size = processor_->GetPieceSize();
    for (const AddedToken& token : settings_.added) {
      size = std::max(size, token.id + 1);
    }
    return size;
  }
  int64_t padding() const override { return settings_.padding; }
  int64_t end() const override { return settings_.end; }
  std::string words() const override {
    return c10::str("sentencepiece, ", vocabulary(), ", ", settings_.file);
  }

 private:
  std::vector<Piece> pieces_of(std::string_view original) const {
    Aligned text = text::repaired(original);
    if (!settings_.legacy && !text.text.empty()) {
      text = with_prefix(text);
    }
    std::vector<Piece> out;
    for (const text::AddedTokens::Part& part : added_.cut(text.text)) {
      if (part.token) {
        out.push_back({settings_.added[*part.token].id, text.origin(part.range)});
      } else {
        append_ordinary(text.slice(part.range), out);
      }
    }
    const bool lone_prefix = !settings_.legacy && out.size() > 1 &&
                             out[0].id == processor_->PieceToId(kBar) && is_added(out[1].id);
    if (lone_prefix) {
      out.erase(out.begin());
    }
    return out;
  }

  Aligned with_prefix(const Aligned& text) const {
    Aligned made;
    made.append(kBar, text.origins[0]);
    const Aligned spaced = text::replaced(text, bars_.matches(text.text), " ");
    made.append(spaced, {0, spaced.text.size()});
    return made;
  }

  bool is_added(int64_t id) const {
    return std::any_of(settings_.added.begin(), settings_.added.end(), [id](const AddedToken& t) {
      return t.id == id;
    });
  }

  void append_ordinary(const Aligned& text, std::vector<Piece>& out) const {
    size_t begin = 0;
    for (const size_t end : cuts_in(text.text)) {
      append_chunk(text, {begin, end}, out);
      begin = end;
    }
  }

  // sentencepiece joins unknown characters to one piece, in quadratic time: long runs of them go to it
  // in chunks. Ends of the chunks, the last of them the end of the text.
  std::vector<size_t> cuts_in(std::string_view text) const {
    std::vector<size_t> cuts;
    if (text.size() > kLongRun) {
      std::unordered_map<char32_t, bool> unknown;
      size_t run = 0;  // bytes of unknown characters so far
      for (size_t at = 0; at < text.size();) {
        const text::CodePoint found = text::code_point(text, at);
        const auto seen = unknown.try_emplace(found.value, false);
        if (seen.second) {
          seen.first->second = is_unknown(text.substr(at, found.size));
        }
        if (seen.first->second && run > kLongRun) {
          cuts.push_back(at);
          run = 0;
        }
        run = seen.first->second ? run + found.size : 0;
        at += found.size;
      }
    }
    cuts.push_back(text.size());
    return cuts;
  }

  bool is_unknown(std::string_view character) const {
    const auto proto = processor_->EncodeAsImmutableProto(character);  // owns the pieces
    const auto pieces = proto.pieces();
    return !pieces.empty() && pieces.back().id() == static_cast<uint32_t>(processor_->unk_id());
  }

  // A chunk that does not begin the text goes on with a run of unknown characters.
  void append_chunk(const Aligned& text, Range chunk, std::vector<Piece>& out) const {
    const std::string part = text.text.substr(chunk.begin, chunk.size());
    // The name of the unknown token before a part keeps sentencepiece from stripping its spaces.
    const bool guarded = !settings_.legacy && (part.starts_with(kBar) || part.starts_with(' '));
    const size_t guard = guarded ? settings_.unknown.size() : 0;
    const auto proto =  // owns the pieces
        processor_->EncodeAsImmutableProto(settings_.unknown.substr(0, guard) + part);
    const auto encoded = proto.pieces();
    const size_t first = out.size();
    for (size_t i = guarded ? unknown_pieces_ : 0; i < encoded.size(); ++i) {
      const size_t end = encoded[i].end();
      require<InternalError>(
          end >= guard && end - guard <= part.size() && encoded[i].begin() <= end,
          "sentencepiece gave a piece outside its text");
      const size_t begin = std::max<size_t>(encoded[i].begin(), guard) - guard;
      out.push_back(
          {static_cast<int64_t>(encoded[i].id()),
           {chunk.begin + begin, chunk.begin + end - guard}});
    }
    share_bytes(first, out);
    for (size_t i = first; i < out.size(); ++i) {
      out[i].range = text.origin(out[i].range);
    }
    if (chunk.begin > 0) {
      join_run(first, out);
    }
  }

  // Takes the prefix away that sentencepiece gave to a chunk, and joins its run to the one before.
  void join_run(size_t first, std::vector<Piece>& out) const {
    const auto at = [&out](size_t i) { return out.begin() + static_cast<ptrdiff_t>(i); };
    if (first < out.size() && out[first].id == processor_->PieceToId(kBar)) {
      out.erase(at(first));
    }
    const bool both = first > 0 && first < out.size() && out[first].id == processor_->unk_id() &&
                      out[first - 1].id == processor_->unk_id();
    if (both) {
      out[first - 1].range.end = out[first].range.end;
      out.erase(at(first));
    }
  }

  // Of the bytes of a character only the last has a place in the text; all are given it.
  void share_bytes(size_t first, std::vector<Piece>& out) const {
    for (size_t i = out.size(); i-- > first + 1;) {
      Piece& before = out[i - 1];
      const bool bytes = processor_->IsByte(static_cast<int>(before.id)) &&
                         processor_->IsByte(static_cast<int>(out[i].id));
      if (bytes && before.range.size() == 0) {
        before.range = out[i].range;
      }
    }
  }

  std::shared_ptr<const Processor> processor_;
  Settings settings_;
  text::AddedTokens added_;
  text::Pattern bars_;
  size_t unknown_pieces_ = 0;
};

std::shared_ptr<const Processor> open_processor(const std::filesystem::path& path, bool legacy) {
  std::string bytes = read_text_file(path, kMaxFile);
  require(!bytes.empty(), path.string(), ": is empty, not a sentencepiece model");
  if (!legacy) {
    bytes.append(kNoPrefix);
  }
  auto processor = std::make_shared<Processor>();
  const auto status = processor->LoadFromSerializedProto(bytes);
  require(
      status.ok(), path.string(),
      ": is not a sentencepiece model: ", printable(status.error_message()));
  return processor;
}

std::string class_of(const TokenSettings& settings) {
  std::string name = settings.config ? settings.config->text("tokenizer_class", "") : "";
  if (name.ends_with("Fast")) {
    name.resize(name.size() - 4);
  }
  return name;
}

void add_special(const std::string& name, int64_t id, std::vector<AddedToken>& added) {
  if (id >= 0) {
    text::join_added(added, {{.content = name, .id = id, .special = true}}, "the special tokens");
  }
}

std::unique_ptr<Tokenizer> open_t5(const std::filesystem::path& directory) {
  const auto path = directory / "spiece.model";
  const TokenSettings from = text::read_token_settings(directory);
  const std::string name = class_of(from);
  require(
      name.empty() || name == "T5Tokenizer", path.string(), ": the model of a ", printable(name),
      " is not implemented, only that of a T5Tokenizer");
  Settings settings;
  settings.legacy = from.flag("legacy", true);
  const auto processor = open_processor(path, settings.legacy);
  require(
      processor->pad_id() == 0 && processor->eos_id() == 1, path.string(),
      ": has the padding token ", processor->pad_id(), " and the end token ", processor->eos_id(),
      "; those of T5 are 0 and 1");
  const int64_t extra = from.config ? from.config->integer("extra_ids", 100) : 100;
  require(extra >= 0 && extra <= 10'000, path.string(), ": extra_ids is ", extra);
  // The last of them comes first.
  for (int64_t i = 0; i < extra; ++i) {
    add_special(
        c10::str("<extra_id_", i, ">"), processor->GetPieceSize() - 1 + extra - i, settings.added);
  }
  settings.unknown = from.name("unk_token", "<unk>");
  add_special(settings.unknown, processor->unk_id(), settings.added);
  add_special(from.name("pad_token", "<pad>"), processor->pad_id(), settings.added);
  add_special(from.name("eos_token", "</s>"), processor->eos_id(), settings.added);
  text::join_added(settings.added, from.added, path.string());
  settings.end = processor->eos_id();
  settings.padding = processor->pad_id();
  settings.file = "spiece.model";
  const Slot end = {Slot::Kind::kAdded, settings.end, 0};
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  const Slot second = {Slot::Kind::kSecond, 0, 0};
  settings.layout = {{first, end}, {first, end, second, end}};
  return std::make_unique<SentencePieceTokenizer>(processor, std::move(settings));
}

std::unique_ptr<Tokenizer> open_llama(const std::filesystem::path& directory) {
  const auto path = directory / "tokenizer.model";
  const TokenSettings from = text::read_token_settings(directory);
  const std::string name = class_of(from);
  require(
      name.empty() || name == "LlamaTokenizer", path.string(), ": the model of a ", printable(name),
      " is not implemented, only that of a LlamaTokenizer");
  Settings settings;
  settings.legacy = from.flag("legacy", true);
  const auto processor = open_processor(path, settings.legacy);
  settings.unknown = from.name("unk_token", "<unk>");
  add_special(settings.unknown, processor->unk_id(), settings.added);
  add_special(from.name("bos_token", "<s>"), processor->bos_id(), settings.added);
  add_special(from.name("eos_token", "</s>"), processor->eos_id(), settings.added);
  text::join_added(settings.added, from.added, path.string());
  settings.end = processor->eos_id();
  settings.padding = std::max(processor->pad_id(), 0);
  for (const AddedToken& token : settings.added) {
    settings.padding = token.content == from.name("pad_token", "") ? token.id : settings.padding;
  }
  settings.file = "tokenizer.model";
  const bool begins = from.flag("add_bos_token", true);
  const bool ends = from.flag("add_eos_token", false);
  require(
      (!begins || processor->bos_id() >= 0) && (!ends || processor->eos_id() >= 0), path.string(),
      ": has no token for the begin or the end of a text, which tokenizer_config.json asks for");
  for (const int64_t type : {0, 1}) {
    std::vector<Slot> slots;
    if (begins) {
      slots.push_back({Slot::Kind::kAdded, processor->bos_id(), type});
    }
    slots.push_back({type == 0 ? Slot::Kind::kFirst : Slot::Kind::kSecond, 0, type});
    if (ends) {
      slots.push_back({Slot::Kind::kAdded, settings.end, type});
    }
    settings.layout.single = type == 0 ? slots : settings.layout.single;
    settings.layout.pair.insert(settings.layout.pair.end(), slots.begin(), slots.end());
  }
  return std::make_unique<SentencePieceTokenizer>(processor, std::move(settings));
}

std::unique_ptr<Tokenizer> find_files(const std::filesystem::path& directory) {
  if (std::filesystem::exists(directory / "spiece.model")) {
    return open_t5(directory);
  }
  return std::filesystem::exists(directory / "tokenizer.model") ? open_llama(directory) : nullptr;
}

}  // namespace

const TokenizerKind& sentencepiece() {
  static const TokenizerKind kind = {
      "sentencepiece of T5 (spiece.model) and Llama (tokenizer.model)", nullptr, find_files};
  return kind;
}

}  // namespace theseus::data::tokenizers
