#pragma once

#include <string>
#include <vector>

#include "theseus/transport/source_update.h"

namespace theseus::transport {

// Compares the weights that an update changes with the base's. Only linear layers count; heads onto labels or vocabulary
// do not, because they may be new. The figures are estimated from some rows of each weight, so no weight is read whole.
struct Kinship {
  double relative = 0;                // |tuned - base| / |base|
  double cosine = 1;                  // of tuned and base
  std::vector<std::string> replaced;  // weights that alone look like others, by name
  int64_t changed = 0;                // weights that were looked at
};

Kinship kinship_of(const SourceUpdate& update, const model::Architecture& source);

// Warnings: fine-tuning moves weights by some percent of their norm, and two models that have nothing to do with each
// other are as far apart as they are long.
std::vector<std::string> notes_on_kinship(const Kinship& kinship);

}  // namespace theseus::transport
