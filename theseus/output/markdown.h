#pragma once

#include <string>
#include <string_view>

namespace theseus::output {

// Text of any origin as Markdown that shows just that text, on one line, in a paragraph or a cell of a
// table. What is not UTF-8 becomes U+FFFD, control characters \xNN.
std::string markdown_text(std::string_view text);

// The same as a block of code.
std::string markdown_code(std::string_view text);

// The same as a YAML scalar in double quotes.
std::string yaml_text(std::string_view text);

}  // namespace theseus::output
