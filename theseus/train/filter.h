#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace theseus::train {

// Whether a name is meant: one that holds `filter` somewhere or, where the filter has a '*', one that is
// it as a whole, each '*' standing for any text. "mlp", "blocks.0.*", "*.bias".
bool matches(std::string_view name, std::string_view filter);

// Whether any filter means the name.
bool matches(std::string_view name, const std::vector<std::string>& filters);

// Throws InputError naming `option` and a filter that means none of `names`, with some of these.
void require_all_match(
    const std::string& option,
    const std::vector<std::string>& filters,
    const std::vector<std::string>& names);

}  // namespace theseus::train
