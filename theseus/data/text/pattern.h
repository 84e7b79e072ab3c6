#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "theseus/data/text/aligned.h"

namespace theseus::data::text {

// A regular expression as the `tokenizers` library writes them (Oniguruma's syntax), run by PCRE2.
// \s and \w mean Unicode's White_Space and word characters. Threads may share one.
class Pattern {
 public:
  // `where` names the place for errors. Throws InputError for what cannot be compiled or what PCRE2
  // would understand otherwise than Oniguruma.
  Pattern(std::string_view expression, const std::string& where);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  // All matches from left to right, none overlapping. `text` is valid UTF-8. Throws InputError when
  // the expression needs more steps than any sensible one for a text of this length.
  std::vector<Range> matches(std::string_view text) const;

  // An expression that matches just `literal`.
  static std::string quoted(std::string_view literal);

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace theseus::data::text
