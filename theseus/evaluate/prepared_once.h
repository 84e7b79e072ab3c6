#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "theseus/output/job.h"

namespace theseus::evaluate {

// What several jobs make their maps from. Examples are read, decoded and preprocessed once, into a file
// that goes when they are done; a process that takes over from one that was killed finds it there.
class PreparedOnce {
 public:
  // `batches`: 0 for what each job says, which must be the same for all.
  PreparedOnce(std::string data, int64_t batches, std::filesystem::path file);
  ~PreparedOnce();
  PreparedOnce(const PreparedOnce&) = delete;
  PreparedOnce& operator=(const PreparedOnce&) = delete;

  // Lets `job` read the file, which is made now if it is not there, and gives what was drawn, for the
  // record. Throws InputError.
  nlohmann::ordered_json give(output::JobOptions& job) const;

  // No other process will ask for it.
  void done() { done_ = true; }

 private:
  std::filesystem::path about() const;
  nlohmann::ordered_json prepare(const output::JobOptions& job) const;

  std::string data_;
  int64_t batches_;
  std::filesystem::path file_;
  bool done_ = false;
};

}  // namespace theseus::evaluate
