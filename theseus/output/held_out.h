#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "theseus/output/opened.h"
#include "theseus/stats/walk.h"
#include "theseus/transport/aligner.h"

namespace theseus::output {

// How alike the two models' rows S and R of one space are, held out from the alignment. The cosines
// are those of all rows taken together, tr(T^T C) / sqrt(tr(T^T G_s T) tr(G_r)) with C = S^T R,
// G_s = S^T S and G_r = R^T R: the energy-weighted cosine, not the mean over rows of their cosines.
// Where rows have equal norms the two are the same.
struct Likeness {
  double before = 0;    // T: ones on the diagonal
  double after = 0;     // T: the map
  double centred = 0;   // the same with the means of S and R taken out: rows that differ in nothing
                        // but a common mean are alike before and after, and carry no skill
  double residual = 0;  // |S T - R| / |R|
};

// Both models in step over inputs that the alignment has not seen, one stage at a time, with the
// states of all these inputs in memory and the moments of one stage.
class HeldOut {
 public:
  // `inputs` and `opened` must outlive this.
  HeldOut(
      Opened& opened,
      const stats::Calibration& inputs,
      const stats::Route& route,
      const transport::AlignOptions& options,
      const transport::SpaceSet& needed);

  // The likeness in every space of `maps`, which belong to `stage`; call for each stage from 0 on.
  // Spaces that these inputs do not reach are left out.
  std::map<std::string, Likeness> measure(int64_t stage, const transport::MapSet& maps);

 private:
  const stats::Calibration& inputs_;
  transport::Solver raw_, centred_;  // for the moments of outputs, which follow from the inputs'
  stats::Walk walk_;
  std::vector<stats::WalkState> states_;
};

// A basis [ds, rank] of the source's directions that the statistics determine, those of the largest
// singular values of C. Undefined when `problem` has no statistics.
at::Tensor determined(const maps::Problem& problem, int64_t rank);

}  // namespace theseus::output
