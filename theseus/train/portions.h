#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/train/batches.h"
#include "theseus/train/finetune.h"
#include "theseus/train/head.h"

namespace theseus::train {

// What is learnt from, and what is measured on.
struct Portions {
  std::unique_ptr<data::Examples> examples, other;  // `other`: where the second is other data
  Portion training, held_out;                       // the second may be empty
  std::string words;                                // how the second was chosen
  int64_t left_out = 0;                             // not learnt from, being among the second
  std::vector<std::string> notes;                   // on classes, and on examples that were too few
};

// The two have no example in common: one that would be in both (the same file, or the same text) is not learnt
// from. Throws InputError when there is nothing to learn from, or to hold out.
Portions choose_portions(const FinetuneOptions& options, const model::Model& model);

// Numbers the classes of both as a head that is kept does, and adds what a reader should know to the notes. Throws
// InputError when these are other classes.
void number_classes(const Head& head, Portions& portions);

// Data, counts, split and a hash of which examples these are.
nlohmann::ordered_json describe(const Portion& portion, const std::string& data);

}  // namespace theseus::train
