#pragma once

#include <string>
#include <vector>

#include "theseus/transport/source_update.h"

namespace theseus::transport {

// How the weights that an update changes stand to the base's: of linear layers, without heads onto labels or
// vocabulary, which may be new. From a sample of each weight's rows, so that nothing is read whole for it.
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
