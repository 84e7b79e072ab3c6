#include "theseus/data/text/piece_model.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <queue>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/text/aligned.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {
namespace {

using Type = PieceFile::Type;

constexpr float kUnknownPenalty = 10;
constexpr std::string_view kUnknownMark = " \xE2\x81\x87 ";

// "<0x41>"
int32_t byte_of(std::string_view name, const std::string& where) {
  unsigned value = 256;
  if (name.size() == 6 && name.starts_with("<0x") && name.ends_with('>')) {
    const auto result = std::from_chars(name.data() + 3, name.data() + 5, value, 16);
    value = result.ptr == name.data() + 5 ? value : 256;
  }
  require(value < 256, where, ": the piece '", printable(name), "' stands for no byte");
  return static_cast<int32_t>(value);
}

}  // namespace

PieceModel::PieceModel(std::string_view bytes, bool prefix, const std::string& where)
    : file_(PieceFile::read(bytes, where)), normaliser_(file_, prefix && file_.prefix, where) {
  bytes_.fill(kNone);
  index(where);
  require(
      !file_.byte_fallback || std::find(bytes_.begin(), bytes_.end(), kNone) == bytes_.end(), where,
      ": has byte_fallback but not a piece for every byte");
}

void PieceModel::index(const std::string& where) {
  float worst = std::numeric_limits<float>::max();
  best_score_ = std::numeric_limits<float>::lowest();
  for (size_t i = 0; i < file_.entries.size(); ++i) {
    const PieceFile::Entry& entry = file_.entries[i];
    const auto id = static_cast<int32_t>(i);
    if (entry.type == Type::kByte) {
      bytes_[static_cast<size_t>(byte_of(entry.piece, where))] = id;
    }
    if (entry.type == Type::kUnknown) {
      unknown_ = id;
    }
    if (entry.type == Type::kNormal) {
      worst = std::min(worst, entry.score);
      best_score_ = std::max(best_score_, entry.score);
    }
    const bool pairs = file_.kind == PieceFile::Kind::kBytePairs;
    require(
        entry.type != Type::kUnused || !pairs, where,
        ": BPE with pieces that are not to be used is not implemented");
    if (entry.type == Type::kNormal || entry.type == Type::kUserDefined) {
      const bool fresh = ids_.emplace(entry.piece, id).second;
      require(fresh, where, ": the piece '", printable(entry.piece), "' comes twice");
      trie_.add(entry.piece, id);
    }
    if (entry.type == Type::kUserDefined) {
      user_defined_.add(entry.piece, id);
    }
  }
  unknown_score_ = worst - kUnknownPenalty;
}

int64_t PieceModel::control(const std::string& name) const {
  for (size_t i = 0; i < file_.entries.size(); ++i) {
    if (file_.entries[i].type == Type::kControl && file_.entries[i].piece == name) {
      return static_cast<int64_t>(i);
    }
  }
  return kNone;
}

int64_t PieceModel::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  return found == ids_.end() ? kNone : found->second;
}

// For every place in the text the best way to get there, from left to right.
std::vector<Piece> PieceModel::best_sum(std::string_view text) const {
  struct Way {
    float score = 0;
    int64_t begin = kNone;  // of its last piece
    int32_t id = kNone;
  };
  std::vector<Way> ways(text.size() + 1);
  for (size_t at = 0; at < text.size();) {
    const size_t character = code_point(text, at).size;
    const float here = ways[at].score;
    const auto offer = [&ways, at, here](size_t size, float score, int32_t id) {
      Way& way = ways[at + size];
      if (way.begin == kNone || here + score > way.score) {
        way = {here + score, static_cast<int64_t>(at), id};
      }
    };
    bool single = false;
    trie_.each_prefix(text.substr(at), [&](size_t size, int32_t id) {
      const PieceFile::Entry& entry = file_.entries[static_cast<size_t>(id)];
      // Those of the user always win.
      const bool users = entry.type == Type::kUserDefined;
      offer(size, users ? static_cast<float>(size) * best_score_ - 0.1F : entry.score, id);
      single = single || size == character;
    });
    if (!single) {
      offer(character, unknown_score_, unknown_);
    }
    at += character;
  }
  std::vector<Piece> out;
  for (size_t end = text.size(); end > 0;) {
    const auto begin = static_cast<size_t>(ways[end].begin);
    out.push_back({ways[end].id, {begin, end}});
    end = begin;
  }
  std::reverse(out.begin(), out.end());
  return out;
}

struct PieceModel::Symbol {
  Range range;  // empty: joined to the one before it
  int32_t previous;
  int32_t next;
  bool frozen;  // the user's
};

class PieceModel::Joining {
 public:
  Joining(const PieceModel& model, std::string_view text, std::vector<Symbol> symbols)
      : model_(model), text_(text), symbols_(std::move(symbols)) {}

  const std::vector<Symbol>& run() {
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols_.size()); ++i) {
      offer(i);
    }
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const Symbol& left = at(best.left);
      const bool current = left.range.size() > 0 && left.next != kNone &&
                           at(left.next).range.end - left.range.begin == best.size;
      if (current) {
        join(best.left);
      }
    }
    return symbols_;
  }

 private:
  struct Candidate {
    float score;
    int32_t left;
    size_t size;  // of what they make

    bool operator<(const Candidate& other) const {  // the best is the greatest
      return score < other.score || (score == other.score && left > other.left);
    }
  };

  Symbol& at(int32_t place) { return symbols_[static_cast<size_t>(place)]; }

  void offer(int32_t place) {
    const Symbol& left = at(place);
    if (left.next == kNone || left.frozen || at(left.next).frozen) {
      return;
    }
    const size_t size = at(left.next).range.end - left.range.begin;
    const int64_t id = model_.find(text_.substr(left.range.begin, size));
    if (id != kNone) {
      queue_.push({model_.file_.entries[static_cast<size_t>(id)].score, place, size});
    }
  }

  void join(int32_t place) {
    Symbol& left = at(place);
    Symbol& right = at(left.next);
    left.range.end = right.range.end;
    left.next = right.next;
    right.range = {};
    if (left.next != kNone) {
      at(left.next).previous = place;
    }
    offer(place);
    if (left.previous != kNone) {
      offer(left.previous);
    }
  }

  const PieceModel& model_;
  std::string_view text_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

std::vector<Piece> PieceModel::best_pairs(std::string_view text) const {
  std::vector<Symbol> symbols;
  for (size_t begin = 0; begin < text.size();) {
    size_t defined = 0;
    user_defined_.each_prefix(
        text.substr(begin), [&defined](size_t size, int32_t) { defined = size; });
    const size_t size = defined > 0 ? defined : code_point(text, begin).size;
    const auto place = static_cast<int32_t>(symbols.size());
    symbols.push_back({{begin, begin + size}, place - 1, place + 1, defined > 0});
    begin += size;
  }
  if (!symbols.empty()) {
    symbols.back().next = kNone;
  }
  std::vector<Piece> out;
  Joining joining(*this, text, std::move(symbols));
  for (const Symbol& symbol : joining.run()) {
    if (symbol.range.size() > 0) {
      const int64_t id = find(text.substr(symbol.range.begin, symbol.range.size()));
      out.push_back({id == kNone ? unknown_ : id, symbol.range});
    }
  }
  return out;
}

void PieceModel::append_bytes(std::string_view bytes, Range range, std::vector<Piece>& out) const {
  for (const char byte : bytes) {
    out.push_back({bytes_[static_cast<uint8_t>(byte)], range});
  }
}

std::vector<Piece> PieceModel::encode(std::string_view text) const {
  const PieceNormaliser::Result normal = normaliser_.run(text);
  const std::vector<Piece> pieces =
      file_.kind == PieceFile::Kind::kUnigram ? best_sum(normal.text) : best_pairs(normal.text);
  std::vector<Piece> out;
  bool after_unknown = false;
  for (const Piece& piece : pieces) {
    const Range range = {normal.places[piece.range.begin], normal.places[piece.range.end]};
    const bool unknown = piece.id == unknown_;
    if (unknown && file_.byte_fallback) {
      const auto bytes =
          std::string_view(normal.text).substr(piece.range.begin, piece.range.size());
      append_bytes(bytes, range, out);
    } else if (unknown && after_unknown) {
      out.back().range.end = range.end;
    } else {
      out.push_back({piece.id, range});
    }
    after_unknown = unknown;
  }
  return out;
}

std::string PieceModel::decode(const std::vector<int64_t>& ids) const {
  std::string out;
  std::string bytes;  // that wait for the rest of their character
  bool first = file_.prefix || file_.strip_spaces;
  const auto flush = [&out, &bytes] {
    out.append(repaired(bytes).text);
    bytes.clear();
  };
  for (const int64_t id : ids) {
    require(id >= 0 && id < size(), "the model has no piece ", id);
    const PieceFile::Entry& entry = file_.entries[static_cast<size_t>(id)];
    if (entry.type == Type::kByte) {
      bytes.push_back(static_cast<char>(byte_of(entry.piece, "decoding")));
      first = false;
      continue;
    }
    flush();
    std::string_view piece = entry.piece;
    if (entry.type == Type::kControl) {
      continue;
    }
    if (entry.type == Type::kUnknown) {
      piece = kUnknownMark;
    } else if (first && piece.starts_with(kSpaceBar)) {
      piece.remove_prefix(kSpaceBar.size());  // the one before the text
    }
    first = false;
    while (!piece.empty()) {
      const bool space = piece.starts_with(kSpaceBar);
      out.append(space ? " " : piece.substr(0, 1));
      piece.remove_prefix(space ? kSpaceBar.size() : 1);
    }
  }
  flush();
  return out;
}

}  // namespace theseus::data::text
