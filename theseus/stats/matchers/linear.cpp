// The source's tokens, class token and all, resampled in one dimension to the target's length.

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {
namespace {

PairedRows match(const Sequences& source, const Sequences& target) {
  const auto length = target.rows.size(1);
  if (source.rows.size(1) == length) {
    return one_to_one(source, target);
  }
  require(
      !source.kept.defined() && !target.kept.defined(),
      "matching by 'linear' resamples whole sequences, and these are padded; use 'text' or "
      "'mean'");
  const auto resampled =
      at::upsample_linear1d(source.rows.transpose(1, 2), length, /*align_corners=*/false);
  return one_to_one({.rows = resampled.transpose(1, 2)}, target);
}

}  // namespace

const Matcher& linear() {
  static const Matcher matcher = {
      .summary = "the source's tokens resampled to the target's length", .match = match};
  return matcher;
}

}  // namespace theseus::stats::matchers
