#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "theseus/output/job.h"

namespace theseus::cli {

// The options that plan, align, transport and diagnose share, as they are typed.
class TransportOptions {
 public:
  enum class For { kPlan, kAlign, kTransport, kDiagnose };
  // `app` must outlive this.
  void add(CLI::App& app, For command);

  // Throws InputError for a value that is none. Sets the number of threads.
  output::JobOptions job() const;
  // One for each --tuned when several are given, else none. Each has a directory of its own in --out.
  std::vector<output::JobOptions> jobs() const;

  bool json = false;
  bool quiet = false;
  bool every = false;  // plan: a line for every parameter

 private:
  void add_examples(CLI::App& app);
  void add_maps(CLI::App& app);
  void add_labels(CLI::App& app, For command);
  void read_examples(output::JobOptions& job) const;
  void read_labels(output::JobOptions& job) const;

  CLI::App* app_ = nullptr;
  output::JobOptions job_;
  std::vector<std::filesystem::path> tuned_;
  std::string method_ = "procrustes", norms_ = "diagonal", head_ = "leave", depth_, memory_,
              device_ = "cpu", dtype_ = "float32", output_dtype_ = "auto";
  std::string mask_, vote_ = "mean", template_, draw_;
  int64_t threads_ = 0;
};

}  // namespace theseus::cli
