#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "theseus/model/model.h"
#include "theseus/output/add_delta.h"
#include "theseus/output/deltas.h"
#include "theseus/output/layout.h"

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
  std::vector<TensorChange> changes;  // of the tensors with a delta, as they stand in the files
  double norm = 0;                    // of all of alpha * delta together; tied tensors once
  double rounding_loss = 0;
  Addition addition;  // of all together
};

// Writes base + alpha * delta of every tensor of the target into `directory`, which must exist and
// hold no weights, in `layout`: the target's own (see layout_of), or the same in other dtypes (with_dtype). Tensors
// without a delta are copied bit for bit, or rounded to the layout's dtype, as are all when alpha is 0. Stored copies
// of a tied tensor get its new values.
//
// One tensor and its delta are in memory at a time. Space for all files is reserved first; they appear together at the
// end, or not at all.
// Throws InputError when they cannot be written, NumericError naming a tensor whose new values are not
// finite (beyond what its dtype can hold, or from a delta that is not).
class ModelWriter {
 public:
  ModelWriter(
      const model::Model& target,
      const std::filesystem::path& directory,
      double alpha,
      ModelLayout layout);

  // Those of `tensors`, by their library's own names, that the model has and that are not written yet.
  void write(const std::set<std::string>& tensors, const Deltas& deltas);
  // The rest.
  WrittenModel finish(const Deltas& deltas, const Watch& watch = {});

 private:
  struct Change {
    std::string tensor;
    Addition addition;
  };
  // All copies of a tensor, or one that is no parameter's.
  void write(const std::vector<const checkpoint::Entry*>& copies, const Deltas& deltas);
  at::Tensor sum(
      const std::string& tensor, const checkpoint::Entry& entry, const at::Tensor& delta);

  const model::Model& target_;
  std::filesystem::path directory_;
  double alpha_;
  ModelLayout layout_;
  std::map<std::string, std::string> owners_;  // stored name -> tensor
  // Of a tensor, not written yet.
  std::map<std::string, std::vector<const checkpoint::Entry*>> copies_;
  std::map<const checkpoint::Entry*, Change> changes_;  // by a tensor's first copy
  std::optional<checkpoint::StagedCheckpoint> files_;
};

// All in one call, in the target's own layout or in another.
WrittenModel write_model(
    const model::Model& target,
    const std::filesystem::path& directory,
    const Deltas& deltas,
    double alpha = 1,
    const Watch& watch = {},
    const std::optional<ModelLayout>& layout = std::nullopt);

}  // namespace theseus::output
