#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/gradient/trainable.h"
#include "theseus/train/adamw.h"

namespace theseus::train {

constexpr const char* kLossesFile = "losses.jsonl";
constexpr const char* kBestFile = "best.safetensors";

// The best measurement so far.
struct Best {
  int64_t step = 0;
  double value = 0;  // of the metric
  double loss = 0;
};

// Where an unfinished training stands, as one file of the working directory that appears whole: leaves,
// moments, steps, best.
void save(
    const std::filesystem::path& directory,
    const gradient::Trainable& trainable,
    const AdamW& optimiser,
    const std::optional<Best>& best);

// Puts everything back as it was saved. Throws InputError when the file is not of this training.
std::optional<Best> restore(
    const std::filesystem::path& directory, gradient::Trainable& trainable, AdamW& optimiser);

// After how many steps it was saved; 0 where it was not.
int64_t saved_steps(const std::filesystem::path& directory);

// The leaves alone.
void save_leaves(const std::filesystem::path& file, const gradient::Trainable& trainable);
void restore_leaves(const std::filesystem::path& file, gradient::Trainable& trainable);

// One JSON object a line: {"step", "loss", "rate", "gradient_norm"} for every step, {"step",
// "validation_loss", METRIC} for every measurement. Lines are in the file as soon as they are known.
class Losses {
 public:
  // Goes on behind the lines of steps up to `last`; later ones, of a run that was cut off, are dropped.
  Losses(const std::filesystem::path& file, int64_t last);
  void add(const nlohmann::ordered_json& line);
  const std::vector<nlohmann::ordered_json>& lines() const { return lines_; }

 private:
  std::filesystem::path file_;
  std::vector<nlohmann::ordered_json> lines_;
};

}  // namespace theseus::train
