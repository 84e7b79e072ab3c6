#pragma once

#include <string>
#include <string_view>

namespace theseus::report {

// Stands near the beginning of every report, so that we know ours when we would replace it.
constexpr std::string_view kMark = "<!-- written by theseus report -->";

// Text of any origin as HTML that shows just that text, in an element or in a quoted attribute.
// What is not UTF-8 becomes U+FFFD, control characters \xNN.
std::string html_text(std::string_view text);

}  // namespace theseus::report
