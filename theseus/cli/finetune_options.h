#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "theseus/train/finetune.h"

namespace theseus::cli {

// What 'theseus finetune' is told.
class FinetuneOptions {
 public:
  void add(CLI::App& app);
  // Throws InputError for a value that is none. Sets the number of threads.
  train::FinetuneOptions read(bool quiet) const;

 private:
  void add_data(CLI::App& app);
  void add_training(CLI::App& app);
  void add_running(CLI::App& app);

  train::FinetuneOptions given_;
  std::string device_ = "cpu", dtype_ = "float32", output_dtype_ = "auto";
  int64_t threads_ = 0;
  const CLI::App* app_ = nullptr;
};

// Where it is, what it measures, and the notes.
std::string finetune_text(const nlohmann::ordered_json& record, const std::string& out);

}  // namespace theseus::cli
