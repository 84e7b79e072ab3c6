#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "theseus/evaluate/evaluate.h"

namespace theseus::cli {

// The options with which every command that measures says on what and how.
class EvaluateOptions {
 public:
  void add(CLI::App& app);
  // Throws InputError for a value that is none. Sets the number of threads.
  evaluate::EvaluateOptions read() const;

 private:
  evaluate::EvaluateOptions given_;
  std::string probe_;
  int64_t threads_ = 0;
};

constexpr const char* kHeadHelp =
    "classify by this tuned old model's head, carried through --alignment; where it has none, by a "
    "probe that is fitted on its features";

// Puts the head of `path`, unless that is empty, into `how`. Throws InputError.
void take_head(
    const std::string& path,
    const std::string& alignment,
    const model::Model& target,
    evaluate::EvaluateOptions& how,
    const evaluate::Watch& watch);

// A line with what classes were named by; empty where prompts play no part.
std::string prompts_text(const nlohmann::ordered_json& record);
// A line with score, interval and what was measured, and the notes.
std::string score_text(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
