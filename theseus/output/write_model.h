#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/model/model.h"
#include "theseus/output/deltas.h"

namespace theseus::output {

// What adding alpha * delta to one tensor did.
struct TensorChange {
  std::string tensor;        // its library's own name
  double norm = 0;           // |alpha delta|
  double rounding_loss = 0;  // share of it that the stored dtype could not hold:
                             // |alpha delta - (stored - base)| / |alpha delta|
};

struct WrittenModel {
  std::vector<std::string> files;     // in the directory; an index last
  std::vector<TensorChange> changes;  // of the tensors with a delta, in the order of writing
  double norm = 0;                    // of all of alpha * delta together; tied tensors once
  double rounding_loss = 0;
};

// Writes base + alpha * delta of every tensor of the target into `directory`, which must exist and
// hold no weights, in the target's own layout (see layout_of). Tensors without a delta are copied bit
// for bit, as are all when alpha is 0. Stored copies of a tied tensor get its new values.
//
// One tensor and its delta are in memory at a time; a tied tensor that is stored twice is kept until
// its last copy is written. The files appear together at the end, or not at all.
// Throws InputError when they cannot be written, NumericError naming a tensor whose new values are not
// finite (beyond what its dtype can hold, or from a delta that is not).
WrittenModel write_model(
    const model::Model& target,
    const std::filesystem::path& directory,
    const Deltas& deltas,
    double alpha = 1,
    const Watch& watch = {});

}  // namespace theseus::output
