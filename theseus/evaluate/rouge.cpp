#include "theseus/evaluate/rouge.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

namespace theseus::evaluate {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 128 && std::isalnum(byte) != 0) {
      if (!inside) {
        words.emplace_back();
      }
      words.back().push_back(static_cast<char>(std::tolower(byte)));
      inside = true;
    } else {
      inside = false;
    }
  }
  return words;
}

}  // namespace

double rouge_l(std::string_view written, std::string_view wanted) {
  const auto a = words_of(written), b = words_of(wanted);
  if (a.empty() || b.empty()) {
    return 0;
  }
  std::vector<size_t> before(b.size() + 1, 0), now(b.size() + 1, 0);
  for (const auto& word : a) {
    for (size_t j = 0; j < b.size(); ++j) {
      now[j + 1] = word == b[j] ? before[j] + 1 : std::max(before[j + 1], now[j]);
    }
    std::swap(before, now);
  }
  const auto common = static_cast<double>(before.back());
  return 2 * common / static_cast<double>(a.size() + b.size());
}

}  // namespace theseus::evaluate
