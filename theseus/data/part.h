#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "theseus/data/examples.h"

namespace theseus::data {

// Some of a split, for data that are not divided as they should be: of its examples, shuffled by `seed`, those from
// `first` to `last` hundredths. Parts that do not overlap have no example in common.
struct Part {
  std::string split;  // as open_examples takes it; empty: what there is
  int64_t first = 0, last = 100;
  uint64_t seed = 0;
};

// "train[0:80]" or, with a seed that is not 0, "train[0:80]@7": what open_examples takes for a split, too.
std::string part_words(const Part& part);
// The part that such words name; none for other words. Throws InputError for hundredths that are none.
std::optional<Part> find_part(const std::string& words);

// Those examples, in the order in which they are stored. Throws InputError when there is none.
Examples part_of(const Examples& examples, const Part& part);

}  // namespace theseus::data
