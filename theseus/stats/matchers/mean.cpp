// One row a sequence: the mean of its tokens, padding left out.

#include <ATen/ATen.h>

#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {
namespace {

at::Tensor mean_of(const Sequences& sequences) {
  if (!sequences.kept.defined()) {
    return sequences.rows.mean(1);
  }
  const auto weights = sequences.kept.to(sequences.rows.scalar_type()).unsqueeze(-1);  // [n, t, 1]
  return (sequences.rows * weights).sum(1) / weights.sum(1);
}

PairedRows match(const Sequences& source, const Sequences& target) {
  return {mean_of(source), mean_of(target)};
}

}  // namespace

const Matcher& mean() {
  static const Matcher matcher = {.summary = "the mean of each sequence", .match = match};
  return matcher;
}

}  // namespace theseus::stats::matchers
