#pragma once

#include <string_view>

namespace theseus::evaluate {

// ROUGE-L: F1 of the longest common subsequence of words. Words are runs of ASCII letters and digits,
// lower case, without stemming, as the usual scorer has them.
double rouge_l(std::string_view written, std::string_view wanted);

}  // namespace theseus::evaluate
