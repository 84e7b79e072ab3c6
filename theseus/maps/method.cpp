#include "theseus/maps/method.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/machine/suggest.h"

namespace theseus::maps {
namespace {

std::string replaced(std::string_view text, char from, char to) {
  std::string result(text);
  std::replace(result.begin(), result.end(), from, to);
  return result;
}

}  // namespace

Map Map::to(c10::Device device) const {
  auto moved = *this;
  if (factors.defined()) {
    moved.factors = factors.to(device);
  } else {
    moved.matrix = matrix.to(device);
  }
  return moved;
}

const Method& method(std::string_view word) {
  const auto name = replaced(word, '-', '_');
  std::string known;
  for (const auto& plugin : all_methods()) {
    if (plugin.name == name) {
      return *plugin.object;
    }
    known.append(" ").append(replaced(plugin.name, '_', '-'));
  }
  throw InputError(c10::str(
      "unknown method '", printable(word), "'; this build has:", known,
      machine::did_you_mean(word, known)));
}

std::vector<std::string> method_words() {
  std::vector<std::string> words;
  for (const auto& plugin : all_methods()) {
    words.push_back(replaced(plugin.name, '_', '-'));
  }
  return words;
}

Needs needs_of(const Method& method, const Options& options) {
  auto needs = method.needs;
  require(
      options.whiten >= 0 && options.whiten <= 0.5, "whitening takes a power from 0 to 0.5, found ",
      options.whiten);
  require(options.ridge >= 0, "the ridge must not be negative, found ", options.ridge);
  if (options.whiten > 0) {
    require(method.obeys.whiten, "this method does not whiten; procrustes does");
    needs.source_gram = true;
    needs.target_gram = true;
  }
  return needs;
}

}  // namespace theseus::maps
