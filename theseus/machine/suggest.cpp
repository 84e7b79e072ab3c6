#include "theseus/machine/suggest.h"

#include <algorithm>
#include <iterator>
#include <sstream>

namespace theseus::machine {

size_t edits(std::string_view from, std::string_view to) {
  std::vector<std::vector<size_t>> table(from.size() + 1, std::vector<size_t>(to.size() + 1));
  for (size_t i = 0; i <= from.size(); ++i) {
    for (size_t j = 0; j <= to.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = i + j;
        continue;
      }
      const bool same = from[i - 1] == to[j - 1];
      table[i][j] = std::min(
          {table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
      }
    }
  }
  return table[from.size()][to.size()];
}

std::string closest(std::string_view word, const std::vector<std::string>& known) {
  constexpr size_t kLongest = 64;  // longer words are no misspelt ones
  std::string best;
  size_t fewest = std::max<size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : known) {
    const auto distance = word.size() > kLongest ? fewest : edits(word, candidate);
    if (distance < fewest) {
      fewest = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, const std::string& known) {
  std::istringstream words(known);
  const auto near = closest(word, {std::istream_iterator<std::string>(words), {}});
  return near.empty() ? "" : "; did you mean '" + near + "'?";
}

}  // namespace theseus::machine
