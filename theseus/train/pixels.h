#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/data/examples.h"
#include "theseus/data/preprocess.h"
#include "theseus/gradient/labelled.h"

namespace theseus::train {

// Called with how many of how many are done.
using Count = std::function<void(int64_t done, int64_t all)>;

// Images of some examples, decoded and preprocessed once. One that cannot be decoded is left out.
class Pixels {
 public:
  // Throws InputError when too many cannot be decoded.
  Pixels(
      const data::Examples& examples,
      const std::vector<int64_t>& places,
      const data::Preprocessing& how,
      int threads,
      const Count& watch);

  static int64_t bytes(size_t count, const data::Preprocessing& how);

  // Those of `places` that are there, with their labels.
  gradient::Labelled read(const data::Examples& examples, const std::vector<int64_t>& places) const;
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  at::Tensor pixels_;          // [m, 3, h, w] float32
  std::vector<int64_t> rows_;  // of each example, -1: not here
  std::vector<std::string> skipped_;
};

}  // namespace theseus::train
