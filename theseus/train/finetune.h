#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/model/model.h"
#include "theseus/output/output_dtype.h"

namespace theseus::train {

// Everything that decides the result of a fine-tuning.
struct FinetuneOptions {
  std::filesystem::path model, out;
  std::string data, split;  // split empty: train where there is one, never test
  std::string
      validation;  // a split of `data`, other data, or "none"; empty: a tenth of the examples at most
  std::string validation_split;  // of other data; empty: val, or the only one there is
  int64_t validation_limit = 0;  // so many of a split or of other data, drawn; 0: see most_held_out
  std::string start_from;        // see read_start; empty: the model itself
  double start_alpha = 1;
  std::string head;       // see choose_head
  int64_t rank = 0;       // of LoRA; 0: whole tensors
  double lora_alpha = 0;  // the factors' product is scaled by lora_alpha / rank; 0: twice the rank
  std::vector<std::string> lora_on, freeze;  // see choose_trained
  std::vector<std::string> templates;        // zero-shot prompts; empty: those of the data
  std::string wording, second, answer;       // instead of the data's own
  int64_t longest = 0;                       // ids of a text; 0: what the model takes
  int64_t limit = 0;                         // so many examples, drawn; 0: all
  int64_t pack = 0;  // rows of so many ids, which are then the examples; 0: one text a row
  int64_t steps = 2000, batch_size = 128;
  int64_t at_a_time = 0;  // sequences of a batch; 0: see sequences_at_a_time
  double rate = 1e-5, decay = 0.1, clip = 1;
  int64_t warmup = -1;         // steps; negative: a tenth
  int64_t validate_every = 0;  // steps; 0: see train::validate_every
  uint64_t seed = 0;
  output::OutputDtype output_dtype = output::OutputDtype::kAuto;  // of a model, not of factors
  bool resume = false, fresh = false;
  double save_every = 60;  // seconds between two saves of unfinished work, at least; 0: every step
  model::Placement placement;
  nlohmann::ordered_json words;  // the options as they were given, for the record
  std::string recipe;            // a copy for the output, or empty
  std::string version;
};

// Called with how many of how many steps are done; `doing` says with what, before a ':'.
using Watch = std::function<void(double done, double all, const std::string& doing)>;

// Trains and writes options.out: a model like the base, or a PEFT adapter; losses.jsonl; recipe.yaml;
// theseus.json, which is the result; it comes with `seconds` and `examples_per_second`, which are in no file. Of the measurements on examples held out the best step is kept, without any the
// last. An interrupted job goes on where it was saved and ends with the same bytes. Throws InputError.
nlohmann::ordered_json finetune(const FinetuneOptions& options, const Watch& watch);

}  // namespace theseus::train
