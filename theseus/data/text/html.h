#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "theseus/data/text/aligned.h"

namespace theseus::data::text {

// Character references become what they stand for, by the rules of HTML 5 as Python's html.unescape has
// them: names without a semicolon where HTML allows it, numbers of Windows' code page repaired.
Aligned html_unescaped(const Aligned& in);

// What a name stands for: "amp;", or "amp" where HTML allows it.
std::optional<std::string> html_entity(std::string_view name);

}  // namespace theseus::data::text
