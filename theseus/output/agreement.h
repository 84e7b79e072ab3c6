#pragma once

#include <cstdint>
#include <optional>

#include "theseus/output/deltas.h"
#include "theseus/output/opened.h"

namespace theseus::output {

// On how many of `rows` held-out rows the target says what the tuned source says: the class of a sequence, or of a
// language model the next token at every place. `before` as it is, `after` with the carried update at the strength `alpha`.
struct Agreement {
  double before = 0, after = 0;  // shares
  int64_t rows = 0;
  double alpha = 1;

  // Of the rows on which they did not agree, the share that the update won, less those that it lost.
  double gain() const;
  // Two standard errors of it, with so many rows.
  double error() const;
};

// `as_source`: the source's class that each class of the target is, int64 [c]; undefined: the same.
//
// Runs the tuned source and the target on `inputs`, with whole models in memory. The best of `strengths`, of which there
// is at least one. None where the two have no outputs of
// one kind: logits of as many classes, over the same tokens. Both models are as before afterwards.
std::optional<Agreement> find_agreement(
    Opened& opened,
    const stats::Calibration& inputs,
    const Deltas& carried,
    const std::vector<double>& strengths,
    const at::Tensor& as_source = {});

}  // namespace theseus::output
