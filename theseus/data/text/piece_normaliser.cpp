#include "theseus/data/text/piece_normaliser.h"

#include <cstring>

#include "theseus/base/error.h"
#include "theseus/data/text/unicode.h"

namespace theseus::data::text {

PieceNormaliser::PieceNormaliser(const PieceFile& file, bool prefix, const std::string& where)
    : prefix_(prefix), strip_spaces_(file.strip_spaces) {
  read_map(file.character_map, where);
  for (size_t id = 0; id < file.entries.size(); ++id) {
    if (file.entries[id].type == PieceFile::Type::kUserDefined) {
      user_defined_.add(file.entries[id].piece, static_cast<int32_t>(id));
    }
  }
}

// The size of the trie in bytes, the trie, the replacements.
void PieceNormaliser::read_map(std::string_view map, const std::string& where) {
  if (map.empty()) {
    return;
  }
  uint32_t size = 0;
  require(map.size() > sizeof(size), where, ": its map of characters is cut short");
  std::memcpy(&size, map.data(), sizeof(size));
  map.remove_prefix(sizeof(size));
  require(
      size <= map.size() && size % sizeof(uint32_t) == 0 && size > 0, where,
      ": its map of characters is broken");
  units_.resize(size / sizeof(uint32_t));
  std::memcpy(units_.data(), map.data(), size);
  replacements_ = map.substr(size);
  require(
      replacements_.ends_with('\0'), where, ": the replacements of its map of characters are cut");
}

std::pair<size_t, uint32_t> PieceNormaliser::longest_in_map(std::string_view text) const {
  const auto offset = [](uint32_t unit) {
    return static_cast<size_t>((unit >> 10) << ((unit & 0x200) >> 6));
  };
  std::pair<size_t, uint32_t> best = {0, 0};
  size_t node = units_.empty() ? 0 : offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || (units_[node] & 0x800000FF) != byte) {
      break;
    }
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if ((unit & 0x100) != 0 && node < units_.size()) {
      best = {i + 1, units_[node] & 0x7FFFFFFF};
    }
  }
  return best;
}

PieceNormaliser::Step PieceNormaliser::step(std::string_view text) const {
  size_t defined = 0;
  user_defined_.each_prefix(text, [&defined](size_t size, int32_t) { defined = size; });
  if (defined > 0) {
    return {text.substr(0, defined), defined};
  }
  const auto mapped = longest_in_map(text);
  if (mapped.first > 0 && mapped.second < replacements_.size()) {
    return {replacements_.c_str() + mapped.second, mapped.first};
  }
  const size_t size = code_point(text, 0).size;
  return {text.substr(0, size), size};
}

PieceNormaliser::Result PieceNormaliser::run(std::string_view text) const {
  Result made;
  size_t at = 0;
  const auto append = [&made, &at](std::string_view bytes) {
    made.text.append(bytes);
    made.places.insert(made.places.end(), bytes.size(), at);
  };
  bool after_space = strip_spaces_;
  bool begun = false;
  while (at < text.size()) {
    Step next = step(text.substr(at));
    const bool leading = strip_spaces_ && !begun && next.text == " ";
    if (!leading) {
      if (!begun && prefix_) {
        append(kSpaceBar);
      }
      begun = true;
      while (after_space && next.text.starts_with(' ')) {
        next.text.remove_prefix(1);
      }
      for (const char& byte : next.text) {
        append(byte == ' ' ? kSpaceBar : std::string_view(&byte, 1));
      }
      after_space = strip_spaces_ && (next.text.empty() ? after_space : next.text.ends_with(' '));
    }
    at += next.size;
  }
  made.places.push_back(at);
  while (strip_spaces_ && made.text.ends_with(kSpaceBar)) {
    made.text.resize(made.text.size() - kSpaceBar.size());
    made.places.resize(made.text.size() + 1);
  }
  return made;
}

}  // namespace theseus::data::text
