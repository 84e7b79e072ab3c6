#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/model/model.h"
#include "theseus/stats/calibration.h"
#include "theseus/transport/source_update.h"

namespace theseus::transport {

struct ImitateOptions {
  std::string tokens;       // empty: grid for images, text or offsets for text
  double map_ridge = 1e-2;  // relative to the mean variance of a feature of the source
  double fit_ridge = 1e-2;  // relative to the mean square of what a layer reads
};

// What one layer was asked for, on the calibration's rows.
struct Imitated {
  std::string module;
  int64_t source_block = 0;  // whose change its block repeats
  double wanted = 0;  // size of the change wanted of the stream behind it, relative to the stream
  double share = 0;   // of its square that is there in the end
};

struct Imitation {
  std::map<std::string, at::Tensor> deltas;  // by the target's own names of tensors, float32
  std::vector<Imitated> layers;              // those that were fitted, in order
  int64_t blocks = 0;                        // of the target that are fitted
};

// How far the work has come, in blocks of all batches.
using ImitateWatch = std::function<void(int64_t done, int64_t all)>;

// Who is told, and what an interrupted imitation of the same goes on from: blocks that are known are run and not fitted.
struct ImitateMemory {
  ImitateWatch watch;
  std::function<void(const Imitation& so_far)> save = {};  // behind every block; empty: nowhere
  Imitation known = {};
};

// Fits the target to what fine-tuning did to the source, without carrying any of its weights: the
// layers that write the residual stream (attn_out, mlp_out) are changed, block by block, so that the stream
// of the target changes as that of the source did. With s, r the streams of the two bases behind
// such a layer, s' that of the tuned source, h that of the target as it is so far, x what the layer
// reads there, over the rows of all calibrations,
//
//   L      = argmin |s L + c - r|^2 + ridge |L|^2                   (the map, with a constant)
//   dW, db = argmin |h + x dW^T + db - (r + (s' - s) L)|^2 + ridge |dW|^2.
//
// Both need second moments only. In the last block of an image tower the class token, which is all that is
// read of it, counts as much as the patches together. It is a regression, so it needs examples: of the
// new kind, and of a kind that both bases read well, or L does not know what the tuned source's
// features mean. Hidden states of all batches, four times, are kept in memory. Where depths differ the
// deeper tower's blocks are spread evenly over those of the other.
// Throws InputError when the models or calibrations do not belong together.
Imitation imitate(
    model::Model& source,
    const SourceUpdate& update,
    model::Model& target,
    const std::vector<const stats::Calibration*>& calibrations,
    const ImitateOptions& options,
    const ImitateMemory& memory);

// For each of `target` blocks the one of `source` whose end it should resemble.
std::vector<int64_t> evenly_followed(int64_t source, int64_t target);

}  // namespace theseus::transport
