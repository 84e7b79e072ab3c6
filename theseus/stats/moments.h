#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace theseus::stats {

// Rows that are multiplied in float32 before their sum becomes float64.
inline constexpr int64_t kRowsAtATime = 4096;

// Which of the optional second moments are kept.
struct Grams {
  bool source = false;
  bool target = false;
};

// A space at most so wide gets its Grams whatever the method needs: they tell which directions are nothing but
// rounding, and cost little beside the models' own passes.
inline constexpr int64_t kGramsAnyway = 256;
Grams grams_between(Grams needed, int64_t source_width, int64_t target_width);

// Second moments of paired rows: row i of `source` and row i of `target` are the two models'
// activations in the same space for the same token. Sums, so they add up over batches and processes.
// All sums are float64. Where a space is wider than there are rows, the rows themselves are the smaller: then
// there is no `cross` and there are no Grams.
struct PairMoments {
  int64_t rows = 0;
  int64_t distinct = 0;         // tokens of the model that had fewer: rows made of them are no more
  at::Tensor source_sum;        // [ds]
  at::Tensor target_sum;        // [dt]
  at::Tensor cross = {};        // [ds, dt]  sum of s r^T, or undefined: the rows are kept
  at::Tensor source_gram = {};  // [ds, ds]  sum of s s^T, or undefined
  at::Tensor target_gram = {};  // [dt, dt]  sum of r r^T, or undefined
  std::vector<at::Tensor> source_rows = {};  // float32 [n, ds] each
  std::vector<at::Tensor> target_rows = {};  // float32 [n, dt] each

  // Adds n paired rows [n, ds] and [n, dt] that were made of `tokens` (0: of n). Throws InternalError when row counts or widths differ,
  // NumericError on a non-finite value, but on a GPU: who waits for the sums asks require_finite().
  void add(
      const at::Tensor& source, const at::Tensor& target, Grams grams = {}, int64_t tokens = 0);
  // Likewise, and keeps the rows instead of multiplying them. Either all are kept or none.
  void keep(const at::Tensor& source, const at::Tensor& target, int64_t tokens = 0);

  // Throws NumericError when a value was not finite. Waits for the device.
  void require_finite() const;

  bool keeps_rows() const { return !source_rows.empty(); }
  // All that are kept, [rows, ds] and [rows, dt].
  std::pair<at::Tensor, at::Tensor> kept() const;
  // The moments of those that are kept.
  PairMoments multiplied(Grams grams) const;

  // The same about the means.
  PairMoments centred() const;

  // Named tensors, for a file; `from` is their inverse.
  std::vector<std::pair<std::string, at::Tensor>> tensors() const;
  static PairMoments from(const std::map<std::string, at::Tensor>& tensors);
  PairMoments to(c10::Device device) const;

 private:
  void count(const at::Tensor& source, const at::Tensor& target, int64_t tokens);
  void sum_up(const at::Tensor& source, const at::Tensor& target);
};

// left^T right [dl, dr] in float64 of rows [n, dl] and [n, dr]. Small products and those of float64 rows are computed in
// float64; large ones where that is slow in float32, for some thousand rows at a time, and summed in float64.
at::Tensor product_of_rows(const at::Tensor& left, const at::Tensor& right);

}  // namespace theseus::stats
