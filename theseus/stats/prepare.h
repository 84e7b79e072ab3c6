#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/data/examples.h"
#include "theseus/data/sampling.h"
#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"

namespace theseus::stats {

// Which examples take part in a calibration that is made from data.
struct Choice {
  std::string data;            // as data::open_examples reads it
  std::string split;           // empty: train where there is one
  Sampling sampling;           // how many, where there are no shots
  int64_t shots = 0;           // K-shot: so many of each class
  int64_t longest = 0;         // ids of a text; 0: what the model takes
  bool labels = false;         // also what the models should say
  bool source_learns = false;  // the source goes by the labels, too, and not the target alone
  std::vector<std::string> templates;    // prompts for class names; empty: those of the data
  data::Wording wording = {"", "", ""};  // parts that are not empty stand for the data's own
  int64_t pack = 0;  // of causal models: texts end to end in rows of so many ids; 0: one text a row
};

// Whether `words` name a file of tensors, which is a calibration as it is.
bool is_prepared(const std::string& words);

// Those of `examples` that take part: all of them where more are asked for, and it says so.
data::Draw draw(const data::Examples& examples, const Choice& choice);

// Runs the examples through both models' preprocessing or tokenizers and writes what Calibration reads
// to `path`: source/NAME and target/NAME, or NAME alone where both models get the same. Returns what was
// drawn and what was left out, for the record. With labels a causal model reads texts with their answers
// behind them, and CLIP reads the class names. Packed texts are drawn first; both models must read the same
// ids then, for else a row would hold other texts. Throws InputError.
nlohmann::ordered_json prepare_calibration(
    const Choice& choice,
    model::Model& source,
    model::Model& target,
    const std::filesystem::path& path,
    const std::function<void(int64_t done, int64_t all)>& watch);

}  // namespace theseus::stats
