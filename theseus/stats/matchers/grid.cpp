// Images: the class token with the class token, and the source's patches resampled in two dimensions
// to the target's grid (bilinear, corners not aligned).

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/stats/matcher.h"

namespace theseus::stats::matchers {
namespace {

void check(const Sequences& sequences, const char* side) {
  require(
      sequences.grid > 0 && sequences.rows.size(1) == sequences.grid * sequences.grid + 1,
      "matching by 'grid' needs a class token and square patches; the ", side, " has ",
      sequences.rows.size(1), " tokens and a grid of ", sequences.grid);
}

PairedRows match(const Sequences& source, const Sequences& target) {
  check(source, "source");
  check(target, "target");
  if (source.grid == target.grid) {
    return one_to_one(source, target);
  }
  const auto n = source.rows.size(0), d = source.rows.size(2);
  const auto g = target.grid;
  // [n, g, g, d] in memory is an image with channels last: nothing is moved.
  const auto patches = source.rows.narrow(1, 1, source.grid * source.grid)
                           .reshape({n, source.grid, source.grid, d})
                           .permute({0, 3, 1, 2});
  const auto resampled = at::upsample_bilinear2d(patches, {g, g}, /*align_corners=*/false);
  const auto rows = at::cat(
      {source.rows.narrow(1, 0, 1), resampled.permute({0, 2, 3, 1}).reshape({n, g * g, d})}, 1);
  return one_to_one({.rows = rows}, target);
}

}  // namespace

const Matcher& grid() {
  static const Matcher matcher = {
      .summary = "patches of an image resampled to the target's grid",
      .images_only = true,
      .match = match};
  return matcher;
}

}  // namespace theseus::stats::matchers
