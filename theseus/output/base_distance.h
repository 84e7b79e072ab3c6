#pragma once

#include <cstdint>
#include <vector>

#include "theseus/output/opened.h"
#include "theseus/transport/plan.h"

namespace theseus::output {

// How far two bases are from each other where they have tensors of the same name and shape.
struct BaseDistance {
  int64_t compared = 0;     // tensors
  int64_t of = 0;           // that the target has
  double relative = 0;      // |A - B| / |A| over those compared
  double equal_bytes = 0;   // share of equal bytes among those; other dtypes count as other bytes
  bool same_shapes = true;  // whether everything that is carried could be copied as it is
};

// Reads both models.
BaseDistance distance_of_bases(
    const Opened& opened, const std::vector<transport::Disposition>& plan);

}  // namespace theseus::output
