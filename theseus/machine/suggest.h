#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace theseus::machine {

// Letters to change, add, leave out or swap with their neighbour to come from one word to the other.
size_t edits(std::string_view from, std::string_view to);

// The known word that `word` was most likely meant to be, or "" when none is near: at most one letter in
// three is wrong, missing, added, or swapped with its neighbour.
std::string closest(std::string_view word, const std::vector<std::string>& known);

// "; did you mean 'plan'?" of the closest of the words in `known`, which blanks part; "" when none is near.
std::string did_you_mean(std::string_view word, const std::string& known);

}  // namespace theseus::machine
