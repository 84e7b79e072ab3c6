#include "theseus/data/text/vocabulary.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::data::text {

Vocabulary Vocabulary::from_json(const Json& words) {
  const std::string where = words.where();
  require(words.raw().is_object(), where, ": expected an object of words and ids");
  Vocabulary made;
  for (const auto& item : words.raw().items()) {
    require(
        item.value().is_number_integer(), where, ": the id of '", printable(item.key()),
        "' is no integer");
    made.add(item.key(), item.value().get<int64_t>(), where);
  }
  return made;
}

Vocabulary Vocabulary::from_lines(std::string_view text, const std::string& where) {
  Vocabulary made;
  int64_t id = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    made.add(std::string(line), id++, where);
  }
  return made;
}

void Vocabulary::add(const std::string& word, int64_t id, const std::string& where) {
  require(
      id >= 0 && id < int64_t{1} << 24, where, ": '", printable(word), "' has the id ", id,
      "; ids lie between 0 and 2^24");
  if (id >= size()) {
    words_.resize(static_cast<size_t>(id) + 1);
  }
  std::optional<std::string>& place = words_[static_cast<size_t>(id)];
  require(
      !place || *place == word, where, ": '", printable(word), "' and '",
      printable(place.value_or("")), "' have the same id ", id);
  place = word;
  ids_[word] = id;
  longest_ = std::max(longest_, word.size());
}

std::optional<int64_t> Vocabulary::find(std::string_view word) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? std::nullopt : std::optional<int64_t>(found->second);
}

int64_t Vocabulary::id(std::string_view word, const std::string& where) const {
  const auto found = find(word);
  require(found.has_value(), where, ": '", printable(word), "' is not in the vocabulary");
  return *found;
}

const std::string* Vocabulary::word(int64_t id) const {
  if (id < 0 || id >= size() || !words_[static_cast<size_t>(id)]) {
    return nullptr;
  }
  return &*words_[static_cast<size_t>(id)];
}

}  // namespace theseus::data::text
