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
  std::string probe_ = "logistic";
  int64_t threads_ = 0;
};

// A line with score, interval and what was measured, and the notes.
std::string score_text(const nlohmann::ordered_json& record);

}  // namespace theseus::cli
