#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "theseus/data/examples.h"

namespace theseus::data {

// What tells an example from others, however its data were named: of a text what the model is shown and should
// answer, of an image where it lies.
std::string identity_of(const Examples& examples, int64_t place);

using Identities = std::unordered_set<std::string>;

Identities identities_of(const Examples& examples, const std::vector<int64_t>& places);
Identities identities_of(const Examples& examples);

// Where each of the examples lies, whatever it says: two of the same words are two.
Identities places_of(const Examples& examples);

}  // namespace theseus::data
