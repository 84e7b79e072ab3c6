#pragma once

#include <optional>
#include <string>
#include <vector>

#include "theseus/gradient/gradients.h"
#include "theseus/train/batches.h"

namespace theseus::train {

// Examples that nothing is learnt from, to measure a model on now and then. Of packed texts the first `most_rows` rows alone,
// or all where that is 0. The portion, model and reader must outlive this.
class HeldOut {
 public:
  HeldOut(
      Portion portion,
      model::Model& model,
      model::Reader& reader,
      const BatchOptions& options,
      int64_t most_rows,
      const Count& watch);

  // Mean loss over all labels or tokens, and how many were right. As in training, `at_a_time` sequences go
  // through the model at once; 0: see sequences_at_a_time.
  gradient::Measured measure(const gradient::Loss& loss, int64_t at_a_time, const Count& watch);
  const std::vector<std::string>& skipped() const { return skipped_; }
  int64_t size() const;  // examples, or rows of packed texts
  int64_t rows_left_out() const { return rows_left_out_; }

 private:
  Portion portion_;
  model::Model& model_;
  model::Reader& reader_;
  BatchOptions options_;
  std::optional<Pixels> pixels_;
  std::optional<gradient::Labelled> rows_;  // of packed texts
  std::vector<std::string> skipped_;
  int64_t rows_left_out_ = 0;
};

}  // namespace theseus::train
