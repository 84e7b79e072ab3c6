#pragma once

#include <vector>

#include "theseus/evaluate/compare_inputs.h"

namespace theseus::evaluate {

// Opens everything that the cells will need, so that what is missing is said before hours of work: models, updates,
// the examples of `shares`, one for each setting, and whether they can be measured, chosen by and drawn as asked. Throws
// InputError.
void check_inputs(const CompareOptions& options, std::vector<Shares>& shares);

}  // namespace theseus::evaluate
