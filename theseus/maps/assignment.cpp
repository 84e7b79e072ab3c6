// Linear assignment by shortest augmenting paths (Jonker and Volgenant 1987; Crouse 2016).
//
//   minimise sum_i cost[i, column(i)],   dual: u_i + v_j <= cost[i, j], equality where assigned
//
// Rows are assigned one by one: Dijkstra over the reduced costs cost - u - v from the new row to the
// nearest free column, then the assignments along that path swap.

#include "theseus/maps/assignment.h"

#include <limits>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::maps {
namespace {

class Assignment {
 public:
  Assignment(const double* cost, int64_t n)
      : cost_(cost), n_(n), u_(n), v_(n), column_(n, -1), row_(n, -1), distance_(n), before_(n) {}

  std::vector<int64_t> solve() {
    for (int64_t row = 0; row < n_; ++row) {
      augment(row);
    }
    return column_;
  }

 private:
  // Fills distance_, before_ and done_; returns the free column at the end of the shortest path.
  int64_t shortest_path(int64_t from) {
    distance_.assign(n_, std::numeric_limits<double>::infinity());
    done_.assign(n_, false);
    reached_ = 0;
    for (int64_t row = from;;) {
      int64_t nearest = -1;
      for (int64_t j = 0; j < n_; ++j) {
        if (done_[j]) {
          continue;
        }
        const double through = reached_ + cost_[row * n_ + j] - u_[row] - v_[j];
        if (through < distance_[j]) {
          distance_[j] = through;
          before_[j] = row;
        }
        if (nearest < 0 || distance_[j] < distance_[nearest]) {
          nearest = j;
        }
      }
      done_[nearest] = true;
      reached_ = distance_[nearest];
      row = row_[nearest];
      if (row < 0) {
        return nearest;
      }
    }
  }

  void augment(int64_t from) {
    int64_t free = shortest_path(from);
    u_[from] += reached_;
    for (int64_t j = 0; j < n_; ++j) {
      if (done_[j] && j != free) {
        u_[row_[j]] += reached_ - distance_[j];
        v_[j] -= reached_ - distance_[j];
      }
    }
    for (int64_t row = -1; row != from;) {
      row = before_[free];
      row_[free] = row;
      std::swap(column_[row], free);
    }
  }

  const double* cost_;  // [n, n]
  int64_t n_;
  std::vector<double> u_;
  std::vector<double> v_;
  std::vector<int64_t> column_;  // of each row; -1: none yet
  std::vector<int64_t> row_;     // of each column
  std::vector<double> distance_;
  std::vector<int64_t> before_;  // the row from which a column was reached
  std::vector<bool> done_;
  double reached_ = 0;
};

}  // namespace

at::Tensor assign(const at::Tensor& score) {
  require<InternalError>(
      score.dim() == 2 && score.size(0) == score.size(1), "an assignment of ", score.sizes());
  const auto cost = score.to(at::kDouble).neg().contiguous();
  const auto columns = Assignment(cost.data_ptr<double>(), score.size(0)).solve();
  return at::tensor(columns, at::kLong);
}

}  // namespace theseus::maps
