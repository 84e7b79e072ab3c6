#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/data/text/aligned.h"

namespace theseus::data::text {

class Pattern;

// Steps that rewrite a text before it is split. Unicode's data are those of utf8proc. A character that
// composition made of several stands for all of them.
using Normaliser = std::function<Aligned(const Aligned&)>;

enum class Form { kNfc, kNfd, kNfkc, kNfkd };
Aligned unicode_form(const Aligned& in, Form form);

// Every character on its own. With `final_sigma` as Python's lower(): a sigma that ends a word is ς.
Aligned lower_case(const Aligned& in, bool final_sigma = false);

Aligned without(const Aligned& in, bool (*drop)(char32_t));
Aligned replaced(const Aligned& in, const std::vector<Range>& places, std::string_view by);

struct BertSettings {
  bool clean = true;       // no control characters, every white space is a space
  bool ideographs = true;  // spaces around them
  bool strip_accents = true;
  bool lower = true;
};
Aligned bert_form(const Aligned& in, const BertSettings& settings);

}  // namespace theseus::data::text
