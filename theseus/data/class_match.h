#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "theseus/data/examples.h"

namespace theseus::data {

// The classes that a head tells, or those of other data.
struct Classes {
  std::string whose;                // "the head", for messages
  std::string theirs = "the data";  // whose names are matched with them
  int64_t count = 0;                // how many there are
  std::vector<std::string> names;   // of each, or empty
  std::string otherwise;            // what to do where names do not match; ends messages
};

// The class of `classes` that each of `names` is. Names are the same when they differ only in case, spaces, underscores,
// hyphens or an article at their beginning; lists that are equal as they stand need no names that differ. Where the names of one side say nothing (there are none, or all are numbers or
// like LABEL_0) and are not the other's, class i is class i. Throws InputError that gives both lists when counts or
// names differ. `note` gets what a reader should know: that classes were taken by their numbers, or stand in another
// order; else it stays as it is.
std::vector<int64_t> match_classes(
    const Classes& classes, const std::vector<std::string>& names, std::string& note);

// Gives labels and class names of `examples` the numbers of `classes`; nothing changes for examples without labels.
// Returns the note of match_classes(), empty where there is nothing to say.
std::string number_as(const Classes& classes, Examples& examples);

}  // namespace theseus::data
