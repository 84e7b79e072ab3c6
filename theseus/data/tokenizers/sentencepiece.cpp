#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/base/text.h"
#include "theseus/data/text/assemble.h"
#include "theseus/data/text/normalise.h"
#include "theseus/data/text/pattern.h"
#include "theseus/data/text/piece_model.h"
#include "theseus/data/text/token_settings.h"

namespace theseus::data::tokenizers {
namespace {

using text::AddedToken;
using text::Aligned;
using text::Piece;
using text::PieceModel;
using text::Range;
using text::Slot;
using text::TokenSettings;

constexpr int64_t kMaxFile = int64_t{256} << 20;
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
  SentencePieceTokenizer(std::shared_ptr<const PieceModel> model, Settings settings)
      : model_(std::move(model)),
        settings_(std::move(settings)),
        added_(settings_.added),
        bars_(text::kSpaceBar, "sentencepiece's mark of a space") {
    if (!settings_.legacy) {
      unknown_pieces_ = model_->encode(settings_.unknown).size();
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
    std::vector<int64_t> kept;
    for (const int64_t id : ids) {
      require(id >= 0 && id < vocabulary(), "the tokenizer (", words(), ") has no token ", id);
      const bool special = std::any_of(
          settings_.added.begin(), settings_.added.end(),
          [id](const AddedToken& token) { return token.id == id; });
      if (!special) {
        kept.push_back(id);
      }
    }
    return model_->decode(kept);
  }

  int64_t vocabulary() const override {
    int64_t size = model_->size();
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
                             out[0].id == model_->find(text::kSpaceBar) && is_added(out[1].id);
    if (lone_prefix) {
      out.erase(out.begin());
    }
    return out;
  }

  Aligned with_prefix(const Aligned& text) const {
    Aligned made;
    made.append(text::kSpaceBar, text.origins[0]);
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
    // The name of the unknown token before a part keeps its spaces from being stripped.
    const bool guarded =
        !settings_.legacy && (text.text.starts_with(text::kSpaceBar) || text.text.starts_with(' '));
    const size_t guard = guarded ? settings_.unknown.size() : 0;
    const auto pieces = model_->encode(settings_.unknown.substr(0, guard) + text.text);
    for (size_t i = guarded ? unknown_pieces_ : 0; i < pieces.size(); ++i) {
      const Range range = {
          std::max(pieces[i].range.begin, guard) - guard,
          std::max(pieces[i].range.end, guard) - guard};
      out.push_back({pieces[i].id, text.origin(range)});
    }
  }

  std::shared_ptr<const PieceModel> model_;
  Settings settings_;
  text::AddedTokens added_;
  text::Pattern bars_;
  size_t unknown_pieces_ = 0;
};

std::shared_ptr<const PieceModel> open_model(const std::filesystem::path& path, bool legacy) {
  return std::make_shared<const PieceModel>(read_text_file(path, kMaxFile), legacy, path.string());
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
  const auto model = open_model(path, settings.legacy);
  require(
      model->padding() == 0 && model->end() == 1, path.string(), ": has the padding token ",
      model->padding(), " and the end token ", model->end(), "; those of T5 are 0 and 1");
  const int64_t extra = from.config ? from.config->integer("extra_ids", 100) : 100;
  require(extra >= 0 && extra <= 10'000, path.string(), ": extra_ids is ", extra);
  // The last of them comes first.
  for (int64_t i = 0; i < extra; ++i) {
    add_special(c10::str("<extra_id_", i, ">"), model->size() - 1 + extra - i, settings.added);
  }
  settings.unknown = from.name("unk_token", "<unk>");
  add_special(settings.unknown, model->unknown(), settings.added);
  add_special(from.name("pad_token", "<pad>"), model->padding(), settings.added);
  add_special(from.name("eos_token", "</s>"), model->end(), settings.added);
  text::join_added(settings.added, from.added, path.string());
  settings.end = model->end();
  settings.padding = model->padding();
  settings.file = "spiece.model";
  const Slot end = {Slot::Kind::kAdded, settings.end, 0};
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  const Slot second = {Slot::Kind::kSecond, 0, 0};
  settings.layout = {{first, end}, {first, end, second, end}};
  return std::make_unique<SentencePieceTokenizer>(model, std::move(settings));
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
  const auto model = open_model(path, settings.legacy);
  settings.unknown = from.name("unk_token", "<unk>");
  add_special(settings.unknown, model->unknown(), settings.added);
  add_special(from.name("bos_token", "<s>"), model->begin(), settings.added);
  add_special(from.name("eos_token", "</s>"), model->end(), settings.added);
  text::join_added(settings.added, from.added, path.string());
  settings.end = model->end();
  settings.padding = std::max<int64_t>(model->padding(), 0);
  for (const AddedToken& token : settings.added) {
    settings.padding = token.content == from.name("pad_token", "") ? token.id : settings.padding;
  }
  settings.file = "tokenizer.model";
  const bool begins = from.flag("add_bos_token", true);
  const bool ends = from.flag("add_eos_token", false);
  require(
      (!begins || model->begin() >= 0) && (!ends || model->end() >= 0), path.string(),
      ": has no token for the begin or the end of a text, which tokenizer_config.json asks for");
  for (const int64_t type : {0, 1}) {
    std::vector<Slot> slots;
    if (begins) {
      slots.push_back({Slot::Kind::kAdded, model->begin(), type});
    }
    slots.push_back({type == 0 ? Slot::Kind::kFirst : Slot::Kind::kSecond, 0, type});
    if (ends) {
      slots.push_back({Slot::Kind::kAdded, settings.end, type});
    }
    settings.layout.single = type == 0 ? slots : settings.layout.single;
    settings.layout.pair.insert(settings.layout.pair.end(), slots.begin(), slots.end());
  }
  return std::make_unique<SentencePieceTokenizer>(model, std::move(settings));
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
