#include "theseus/stats/matcher.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

at::Tensor all_kept(const Sequences& sequences) {
  return sequences.kept.defined() ? sequences.kept
                                  : at::ones(
                                        {sequences.rows.size(0), sequences.rows.size(1)},
                                        sequences.rows.options().dtype(at::kBool));
}

}  // namespace

PairedRows one_to_one(const Sequences& source, const Sequences& target) {
  require(
      source.rows.size(0) == target.rows.size(0) && source.rows.size(1) == target.rows.size(1),
      "tokens pair one to one only when both models see equally many: the source has ",
      source.rows.size(0), " sequences of ", source.rows.size(1), " tokens, the target ",
      target.rows.size(0), " of ", target.rows.size(1), "; --tokens mean pairs any two lengths");
  if (!source.kept.defined() && !target.kept.defined()) {
    return {source.rows.flatten(0, 1), target.rows.flatten(0, 1)};
  }
  const auto kept = all_kept(source);
  require(
      at::equal(kept, all_kept(target)),
      "the two models' inputs are padded at different places, so their tokens do not pair");
  return {source.rows.index({kept}), target.rows.index({kept})};
}

}  // namespace theseus::stats
