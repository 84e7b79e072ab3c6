#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "theseus/base/plugin.h"

namespace theseus::stats {

// The tokens of some sequences in one model.
struct Sequences {
  at::Tensor rows;   // [n, t, d]
  at::Tensor kept;   // bool [n, t], false for padding; undefined: no padding
  int64_t grid = 0;  // patches a side that follow the class token; 0: not an image
  at::Tensor spans;  // int64 [n, t, 2], the text of each token, from .. to; undefined: not known
};

struct PairedRows {
  at::Tensor source;  // [m, ds]
  at::Tensor target;  // [m, dt]
};

// Which token of the source goes with which of the target: one file in stats/matchers/. Row m of
// the result is the same place in both; every row is a mean of tokens with weights that sum to one,
// so that moments of a linear layer's output follow from those of its input. Throws InputError when
// the sequences cannot be matched this way.
struct Matcher {
  std::string_view summary;
  bool images_only = false;
  bool needs_spans = false;
  PairedRows (*match)(const Sequences& source, const Sequences& target);
};

// Every matcher in this build, sorted by name.
std::span<const Plugin<Matcher>> all_matchers();

// Rows of all sequences under each other, without padding. Throws InputError when the two sides pad
// differently.
PairedRows one_to_one(const Sequences& source, const Sequences& target);

}  // namespace theseus::stats
