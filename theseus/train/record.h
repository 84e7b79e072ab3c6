#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/train/portions.h"
#include "theseus/train/training.h"
#include "theseus/train/write_tuned.h"

namespace theseus::train {

// What was trained.
struct Subject {
  const model::Model* model;
  const Portions* portions;
  const Head* head;
  int64_t trained;              // numbers
  int64_t tensors;              // that hold them
  int64_t frozen;               // tensors that stayed
  const WrittenTuned* written;  // null: an adapter
};

// theseus.json: what went in, how it was trained, measurements by step as "curve", the training loss, averaged
// where there are many steps, as "losses", the best, notes. The same for the same bytes of output.
nlohmann::ordered_json describe_training(
    const FinetuneOptions& options,
    const TrainingOptions& how,
    const Outcome& outcome,
    const Subject& subject);

// A model card of the record; `library` loads the model.
void write_card(
    const nlohmann::ordered_json& record,
    const std::string& library,
    const std::filesystem::path& directory);

}  // namespace theseus::train
