#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/base/content_hash.h"
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

// What a file of unfinished training says beside the leaves and the moments.
struct Saved {
  std::optional<Best> best;
  std::string losses;  // the hash of what Losses had written; empty where nothing was saved
};

// Where an unfinished training stands, as one file of the working directory that appears whole: leaves,
// moments, steps, and the rest.
void save(
    const std::filesystem::path& directory,
    const gradient::Trainable& trainable,
    const AdamW& optimiser,
    const Saved& rest);

// Puts everything back as it was saved. Throws InputError when the file is not of this training, or damaged.
Saved restore(
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
  // Goes on behind the lines of steps up to `last`; later ones, of a run that was cut off, are dropped. `hash` is what
  // hash() was after them: throws InputError when the file is damaged.
  Losses(const std::filesystem::path& file, int64_t last, const std::string& hash);
  void add(const nlohmann::ordered_json& line);
  // Of all lines, which are on the disk afterwards.
  std::string hash() const;
  const std::vector<nlohmann::ordered_json>& lines() const { return lines_; }

 private:
  std::filesystem::path file_;
  ContentHash hash_;
  std::vector<nlohmann::ordered_json> lines_;
};

}  // namespace theseus::train
