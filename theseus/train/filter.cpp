#include "theseus/train/filter.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::train {
namespace {

// By going back to the last star: linear memory, at most name x filter steps.
bool is_whole(std::string_view name, std::string_view filter) {
  size_t at = 0, place = 0, star = std::string_view::npos, behind = 0;
  while (at < name.size()) {
    if (place < filter.size() && filter[place] == '*') {
      star = place++;
      behind = at;
    } else if (place < filter.size() && filter[place] == name[at]) {
      ++place;
      ++at;
    } else if (star != std::string_view::npos) {
      place = star + 1;
      at = ++behind;
    } else {
      return false;
    }
  }
  return filter.find_first_not_of('*', place) == std::string_view::npos;
}

}  // namespace

bool matches(std::string_view name, std::string_view filter) {
  return filter.find('*') == std::string_view::npos ? name.find(filter) != std::string_view::npos
                                                    : is_whole(name, filter);
}

bool matches(std::string_view name, const std::vector<std::string>& filters) {
  return std::any_of(filters.begin(), filters.end(), [&](const std::string& filter) {
    return matches(name, filter);
  });
}

void require_all_match(
    const std::string& option,
    const std::vector<std::string>& filters,
    const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  for (const auto& filter : filters) {
    require(!filter.empty(), option, ": an empty filter");
    require(
        std::any_of(
            names.begin(), names.end(),
            [&](const std::string& name) { return matches(name, filter); }),
        option, ": nothing is named like '", printable(filter), "'; there are ",
        joined(names, kShown));
  }
}

}  // namespace theseus::train
