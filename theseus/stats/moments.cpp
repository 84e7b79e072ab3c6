#include "theseus/stats/moments.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

constexpr int64_t kSmallProduct = 1024 * 1024;  // elements of the result
constexpr int64_t kRowsAtATime = 4096;

void accumulate(at::Tensor& sum, const at::Tensor& term) {
  sum = sum.defined() ? sum.add_(term) : term;
}

}  // namespace

at::Tensor product_of_rows(const at::Tensor& left, const at::Tensor& right) {
  if (left.size(1) * right.size(1) <= kSmallProduct) {
    return at::mm(left.to(at::kDouble).t(), right.to(at::kDouble));
  }
  at::Tensor sum;
  for (int64_t row = 0; row < left.size(0); row += kRowsAtATime) {
    const auto count = std::min(kRowsAtATime, left.size(0) - row);
    const auto part = at::mm(
        left.narrow(0, row, count).to(at::kFloat).t(), right.narrow(0, row, count).to(at::kFloat));
    sum = sum.defined() ? sum.add_(part) : part.to(at::kDouble);
  }
  return sum;
}

void PairMoments::add(
    const at::Tensor& source, const at::Tensor& target, Grams grams, int64_t tokens) {
  require<InternalError>(
      source.dim() == 2 && target.dim() == 2 && source.size(0) == target.size(0) &&
          source.size(0) > 0 &&
          (rows == 0 ||
           (source.size(1) == source_sum.size(0) && target.size(1) == target_sum.size(0))),
      "rows ", source.sizes(), " paired with ", target.sizes());
  accumulate(source_sum, source.sum(0, false, at::kDouble));
  accumulate(target_sum, target.sum(0, false, at::kDouble));
  accumulate(cross, product_of_rows(source, target));
  if (grams.source) {
    accumulate(source_gram, product_of_rows(source, source));
  }
  if (grams.target) {
    accumulate(target_gram, product_of_rows(target, target));
  }
  rows += source.size(0);
  distinct += tokens > 0 ? std::min(tokens, source.size(0)) : source.size(0);
  require<NumericError>(
      source_sum.isfinite().all().item<bool>() && target_sum.isfinite().all().item<bool>(),
      "an activation is NaN or infinite");
}

void PairMoments::merge(const PairMoments& other) {
  rows += other.rows;
  distinct += other.distinct;
  accumulate(source_sum, other.source_sum.clone());
  accumulate(target_sum, other.target_sum.clone());
  accumulate(cross, other.cross.clone());
  if (other.source_gram.defined()) {
    accumulate(source_gram, other.source_gram.clone());
  }
  if (other.target_gram.defined()) {
    accumulate(target_gram, other.target_gram.clone());
  }
}

PairMoments PairMoments::centred() const {
  const auto m = static_cast<double>(rows);
  PairMoments result = *this;
  result.cross = cross - at::outer(source_sum, target_sum / m);
  result.source_sum = at::zeros_like(source_sum);
  result.target_sum = at::zeros_like(target_sum);
  if (source_gram.defined()) {
    result.source_gram = source_gram - at::outer(source_sum, source_sum / m);
  }
  if (target_gram.defined()) {
    result.target_gram = target_gram - at::outer(target_sum, target_sum / m);
  }
  return result;
}

std::vector<std::pair<std::string, at::Tensor>> PairMoments::tensors() const {
  std::vector<std::pair<std::string, at::Tensor>> result = {
      {"rows", at::tensor(rows, at::kLong)},
      {"distinct", at::tensor(distinct, at::kLong)},
      {"source_sum", source_sum},
      {"target_sum", target_sum},
      {"cross", cross}};
  if (source_gram.defined()) {
    result.emplace_back("source_gram", source_gram);
  }
  if (target_gram.defined()) {
    result.emplace_back("target_gram", target_gram);
  }
  return result;
}

PairMoments PairMoments::from(const std::map<std::string, at::Tensor>& tensors) {
  const auto find = [&](const char* name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second.clone();
  };
  PairMoments result{
      .source_sum = find("source_sum"),
      .target_sum = find("target_sum"),
      .cross = find("cross"),
      .source_gram = find("source_gram"),
      .target_gram = find("target_gram")};
  const auto count = find("rows"), distinct = find("distinct");
  require(
      count.defined() && distinct.defined() && result.source_sum.defined() &&
          result.target_sum.defined() && result.cross.defined() && result.cross.dim() == 2 &&
          result.cross.size(0) == result.source_sum.numel() &&
          result.cross.size(1) == result.target_sum.numel(),
      "these are not moments of paired rows");
  result.rows = count.item<int64_t>();
  result.distinct = distinct.item<int64_t>();
  return result;
}

}  // namespace theseus::stats
