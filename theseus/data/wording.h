#pragma once

#include <string>
#include <string_view>

#include "theseus/data/examples.h"

namespace theseus::data {

struct Worded {
  std::string first;
  std::string second;
  std::string answer;
};

// The wording with the fields of one example in it. `class_name` null: the label or its name is unknown.
// Throws InputError for a field that is not there, {class} without a name, and braces that do not match.
Worded fill(const Wording& wording, const Fields& fields, const std::string* class_name);
std::string fill(
    std::string_view pattern, const Fields& fields, const std::string* class_name = nullptr);

// Example `i` of `examples`, which are texts, in the given wording.
Worded worded(const Examples& examples, const Wording& wording, int64_t i);

// A zero-shot template with the class in it: every "{c}" is replaced. Throws InputError when there is none.
std::string fill_template(std::string_view words, std::string_view class_name);

}  // namespace theseus::data
