#include "theseus/data/part.h"

#include <algorithm>
#include <memory>
#include <regex>

#include "theseus/base/error.h"
#include "theseus/data/image.h"
#include "theseus/data/sampling.h"
#include "theseus/data/shuffle.h"

namespace theseus::data {

std::string part_words(const Part& part) {
  return c10::str(
      part.split, "[", part.first, ":", part.last, "]",
      part.seed == 0 ? "" : c10::str("@", part.seed));
}

std::optional<Part> find_part(const std::string& words) {
  static const std::regex kForm(R"((|train|val|test)\[(\d{1,3}):(\d{1,3})\](?:@(\d{1,18}))?)");
  std::smatch found;
  if (!std::regex_match(words, found, kForm)) {
    return std::nullopt;
  }
  const Part part{
      .split = found[1],
      .first = std::stoll(found[2]),
      .last = std::stoll(found[3]),
      .seed = found[4].matched ? std::stoull(found[4]) : 0};
  require(
      part.first < part.last && part.last <= 100, "split '", words,
      "': expected hundredths, the first below the last, as in train[0:80]");
  return part;
}

Examples part_of(const Examples& examples, const Part& part) {
  auto places = every(examples);
  Random random(part.seed);
  shuffle_front(places, places.size(), random);
  const auto at = [&](int64_t hundredths) { return examples.size() * hundredths / 100; };
  places.assign(places.begin() + at(part.first), places.begin() + at(part.last));
  require(
      !places.empty(), part_words(part), " of ", examples.size(),
      " examples are none; there are too few to divide them");
  std::sort(places.begin(), places.end());
  auto result = examples;
  result.split = part_words({examples.split, part.first, part.last, part.seed});
  result.names.clear();
  result.labels.clear();
  for (const auto place : places) {
    result.names.push_back(examples.names[static_cast<size_t>(place)]);
    if (!examples.labels.empty()) {
      result.labels.push_back(examples.labels[static_cast<size_t>(place)]);
    }
  }
  const auto kept = std::make_shared<const std::vector<int64_t>>(std::move(places));
  const auto place = [kept](int64_t i) { return kept->at(static_cast<size_t>(i)); };
  if (examples.image) {
    result.image = [read = examples.image, place](int64_t i) { return read(place(i)); };
  } else {
    result.text = [read = examples.text, place](int64_t i) { return read(place(i)); };
  }
  return result;
}

}  // namespace theseus::data
