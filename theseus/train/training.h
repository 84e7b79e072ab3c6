#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/gradient/gradients.h"
#include "theseus/train/adamw.h"
#include "theseus/train/batches.h"
#include "theseus/train/finetune.h"
#include "theseus/train/held_out.h"
#include "theseus/train/save.h"
#include "theseus/train/schedule.h"

namespace theseus::train {

// How good a measurement is.
struct Metric {
  std::string name;  // "accuracy" or "loss"
  bool higher_is_better = true;

  double value(const gradient::Measured& measured) const;
  bool better(double value, double than) const;
  // By value; among equal ones by the loss.
  bool better(const Best& one, const Best& than) const;
};

struct TrainingOptions {
  Schedule schedule;
  AdamW::Options optimiser;
  double clip = 1;
  int64_t at_a_time = 0;
  int64_t validate_every = 1;
  double save_every = 60;
  Metric metric;
};

struct Outcome {
  std::optional<Best> best;                   // none: nothing was measured
  std::vector<nlohmann::ordered_json> lines;  // of losses.jsonl
  // Of this process alone, if an earlier one was interrupted.
  double learning = 0, measuring = 0;  // seconds
  int64_t seen = 0;                    // examples that were learnt from
};

// What is learnt, from what, and what it is measured on.
struct Lesson {
  const gradient::Loss& loss;
  Batches& batches;
  HeldOut* held_out;  // or null
};

// Trains `trainable` up to the last step, and leaves it as it was at the best. What is unfinished is kept in
// `directory`, and gone on with where there is some.
Outcome run_training(
    gradient::Trainable& trainable,
    const Lesson& lesson,
    const TrainingOptions& options,
    const Watch& watch,
    const std::filesystem::path& directory);

}  // namespace theseus::train
