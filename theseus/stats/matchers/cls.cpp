// One row a sequence: its first token.

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {
namespace {

at::Tensor first_of(const Sequences& sequences) {
  require(
      !sequences.kept.defined() || sequences.kept.select(1, 0).all().item<bool>(),
      "matching by 'cls' takes the first token, and here some sequences begin with padding");
  return sequences.rows.select(1, 0);
}

PairedRows match(const Sequences& source, const Sequences& target) {
  return {first_of(source), first_of(target)};
}

}  // namespace

const Matcher& cls() {
  static const Matcher matcher = {.summary = "the first token of each sequence", .match = match};
  return matcher;
}

}  // namespace theseus::stats::matchers
