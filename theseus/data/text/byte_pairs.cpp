#include "theseus/data/text/byte_pairs.h"

#include <algorithm>
#include <queue>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/text/byte_names.h"

namespace theseus::data::text {
namespace {

std::pair<std::string, std::string> split_merge(std::string_view line, const std::string& where) {
  const size_t space = line.find(' ');
  const bool two = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                   line.find(' ', space + 1) == std::string_view::npos;
  require(two, where, ": a merge is two words with a space between, found '", printable(line), "'");
  return {std::string(line.substr(0, space)), std::string(line.substr(space + 1))};
}

uint64_t key_of(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

}  // namespace

Merges merges_from_lines(std::string_view text, const std::string& where) {
  Merges made;
  bool first = true;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.empty() && !(first && line.starts_with("#version"))) {
      made.push_back(split_merge(line, where));
    }
    first = false;
  }
  return made;
}

Merges merges_from_json(const Json& model, std::string_view key) {
  const std::string where = model.where(key);
  const auto& list = model.raw().at(std::string(key));
  require(list.is_array(), where, ": expected a list of merges");
  Merges made;
  made.reserve(list.size());
  for (const auto& item : list) {
    if (item.is_string()) {
      made.push_back(split_merge(item.get_ref<const std::string&>(), where));
      continue;
    }
    const bool pair =
        item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string();
    require(pair, where, ": expected \"a b\" or [\"a\", \"b\"], found ", printable(item.dump()));
    made.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
  }
  return made;
}

BytePairs::BytePairs(
    std::shared_ptr<const Vocabulary> vocabulary,
    const Merges& merges,
    Settings settings,
    const std::string& where)
    : vocabulary_(std::move(vocabulary)), settings_(std::move(settings)) {
  const auto find = [this](const std::string& name) {
    return static_cast<int32_t>(vocabulary_->find(name).value_or(kNone));
  };
  for (size_t byte = 0; byte < 256; ++byte) {
    bytes_[byte] = find(byte_names()[byte]);
    last_[byte] = find(byte_names()[byte] + settings_.suffix);
  }
  merges_.reserve(merges.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& left = merges[rank].first;
    const std::string& right = merges[rank].second;
    const uint64_t key = key_of(vocabulary_->id(left, where), vocabulary_->id(right, where));
    const int64_t made = vocabulary_->id(left + right, where);
    merges_[key] = {static_cast<uint32_t>(rank), static_cast<int32_t>(made)};
  }
  for (const std::string& word : settings_.whole) {
    whole_[to_byte_names(word)] = vocabulary_->id(word, where);
  }
}

size_t BytePairs::missing_bytes() const {
  return static_cast<size_t>(
      std::count(bytes_.begin(), bytes_.end(), kNone) +
      (settings_.suffix.empty() ? 0 : std::count(last_.begin(), last_.end(), kNone)));
}

bool BytePairs::encode_whole(std::string_view word, std::vector<Piece>& out) const {
  if (!settings_.ignore_merges && whole_.empty()) {
    return false;
  }
  if (word.size() > vocabulary_->longest()) {
    return false;
  }
  const std::string name = to_byte_names(word);
  const auto listed = whole_.find(name);
  std::optional<int64_t> id;
  if (listed != whole_.end()) {
    id = listed->second;
  } else if (settings_.ignore_merges) {
    id = vocabulary_->find(name);
  }
  if (id) {
    out.push_back({*id, {0, word.size()}});
  }
  return id.has_value();
}

const BytePairs::Merge* BytePairs::find_merge(int32_t left, int32_t right) const {
  const auto found = merges_.find(key_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

struct BytePairs::Symbol {
  int32_t id;  // kNone: merged into the one before it
  int32_t previous;
  int32_t next;
  Range range;
};

struct BytePairs::Candidate {
  uint32_t rank;
  int32_t left;  // place of the left symbol
  int32_t id;    // of what the merge makes

  bool operator<(const Candidate& other) const {  // the best is the greatest
    return std::pair(rank, left) > std::pair(other.rank, other.left);
  }
};

class BytePairs::Merging {
 public:
  Merging(const BytePairs& pairs, std::vector<Symbol> symbols)
      : pairs_(pairs), symbols_(std::move(symbols)) {
    std::vector<Candidate> first;
    for (int32_t i = 0; i + 1 < static_cast<int32_t>(symbols_.size()); ++i) {
      if (const Merge* merge = pairs_.find_merge(at(i).id, at(i + 1).id)) {
        first.push_back({merge->rank, i, merge->id});
      }
    }
    queue_ = std::priority_queue<Candidate>({}, std::move(first));
  }

  const std::vector<Symbol>& run() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (is_current(best)) {
        merge(best);
      }
    }
    return symbols_;
  }

 private:
  Symbol& at(int32_t place) { return symbols_[static_cast<size_t>(place)]; }

  // Both symbols may have been merged with others since the candidate was found.
  bool is_current(const Candidate& candidate) {
    const Symbol& left = at(candidate.left);
    if (left.id == kNone || left.next == kNone) {
      return false;
    }
    const Merge* merge = pairs_.find_merge(left.id, at(left.next).id);
    return merge != nullptr && merge->id == candidate.id && merge->rank == candidate.rank;
  }

  void merge(const Candidate& candidate) {
    Symbol& left = at(candidate.left);
    Symbol& right = at(left.next);
    left.id = candidate.id;
    left.range.end = right.range.end;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) {
      at(left.next).previous = candidate.left;
      offer(candidate.left);
    }
    if (left.previous != kNone) {
      offer(left.previous);
    }
  }

  void offer(int32_t place) {
    if (const Merge* found = pairs_.find_merge(at(place).id, at(at(place).next).id)) {
      queue_.push({found->rank, place, found->id});
    }
  }

  const BytePairs& pairs_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> queue_;
};

void BytePairs::encode(std::string_view word, std::vector<Piece>& out) const {
  if (encode_whole(word, out)) {
    return;
  }
  std::vector<Symbol> symbols;
  symbols.reserve(word.size());
  for (size_t i = 0; i < word.size(); ++i) {
    const auto byte = static_cast<unsigned char>(word[i]);
    int32_t id = i + 1 == word.size() ? last_[byte] : bytes_[byte];
    if (id == kNone && !settings_.unknown) {
      continue;
    }
    id = id == kNone ? static_cast<int32_t>(*settings_.unknown) : id;
    const auto place = static_cast<int32_t>(symbols.size());
    symbols.push_back({id, place - 1, place + 1, {i, i + 1}});
  }
  if (symbols.empty()) {
    return;
  }
  symbols.back().next = kNone;
  Merging merging(*this, std::move(symbols));
  for (const Symbol& symbol : merging.run()) {
    if (symbol.id != kNone) {
      out.push_back({symbol.id, symbol.range});
    }
  }
}

}  // namespace theseus::data::text
