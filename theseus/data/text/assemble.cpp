#include "theseus/data/text/assemble.h"

#include <algorithm>

#include "theseus/base/error.h"

namespace theseus::data::text {
namespace {

struct Lengths {
  size_t first;
  size_t second;
};

Lengths cut_pair(Lengths full, size_t room) {
  const bool swapped = full.first > full.second;
  size_t shorter = std::min(full.first, full.second);
  size_t longer = std::max(full.first, full.second);
  if (shorter + longer > room) {
    longer = shorter > room ? shorter : std::max(shorter, room - shorter);
  }
  if (shorter + longer > room) {
    shorter = room / 2;
    longer = shorter + room % 2;
  }
  return swapped ? Lengths{longer, shorter} : Lengths{shorter, longer};
}

void append(const std::vector<Piece>& pieces, size_t count, int64_t type, Encoding& out) {
  for (size_t i = 0; i < count; ++i) {
    out.ids.push_back(pieces[i].id);
    out.types.push_back(type);
    out.spans.emplace_back(pieces[i].range.begin, pieces[i].range.end);
  }
}

}  // namespace

Layout Layout::plain() {
  const Slot first = {Slot::Kind::kFirst, 0, 0};
  return {{first}, {first, {Slot::Kind::kSecond, 0, 1}}};
}

Encoding assemble(
    const Layout& layout,
    const std::vector<Piece>& first,
    const std::vector<Piece>* second,
    int64_t longest) {
  require(longest >= 0, "at most ", longest, " tokens were asked for");
  const std::vector<Slot>& slots = second == nullptr ? layout.single : layout.pair;
  require(!slots.empty(), "this tokenizer takes one text at a time, not pairs");
  const auto added = static_cast<size_t>(std::count_if(
      slots.begin(), slots.end(), [](const Slot& s) { return s.kind == Slot::Kind::kAdded; }));
  const Lengths full = {first.size(), second == nullptr ? 0 : second->size()};
  Lengths kept = full;
  if (longest > 0) {
    require(
        static_cast<size_t>(longest) >= added, "at most ", longest,
        " tokens were asked for, but this tokenizer alone adds ", added);
    const size_t room = static_cast<size_t>(longest) - added;
    kept = second == nullptr ? Lengths{std::min(full.first, room), 0} : cut_pair(full, room);
  }
  Encoding out;
  out.truncated = kept.first != full.first || kept.second != full.second;
  for (const Slot& slot : slots) {
    switch (slot.kind) {
      case Slot::Kind::kAdded:
        out.ids.push_back(slot.id);
        out.types.push_back(slot.type);
        out.spans.emplace_back(0, 0);
        break;
      case Slot::Kind::kFirst:
        append(first, kept.first, slot.type, out);
        break;
      case Slot::Kind::kSecond:
        out.second = static_cast<int64_t>(out.ids.size());
        append(*second, kept.second, slot.type, out);
        break;
    }
  }
  return out;
}

}  // namespace theseus::data::text
