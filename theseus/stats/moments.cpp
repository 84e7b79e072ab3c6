#include "theseus/stats/moments.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

constexpr int64_t kSmallProduct = 1024 * 1024;         // elements of the result
constexpr int64_t kNumbersAtATime = int64_t{1} << 27;  // a GB of float64

void accumulate(at::Tensor& sum, const at::Tensor& term) {
  sum = sum.defined() ? sum.add_(term) : term;
}

// Of rows [n, d], in float64: some at a time, as reading float32 into a float64 sum takes four times as long.
at::Tensor sum_of(const at::Tensor& rows) {
  constexpr int64_t kAtATime = 128;
  if (!rows.device().is_cpu()) {
    return rows.sum(0, false, at::kDouble);
  }
  auto sum = at::zeros({rows.size(1)}, rows.options().dtype(at::kDouble));
  for (int64_t row = 0; row < rows.size(0); row += kAtATime) {
    const auto some = rows.narrow(0, row, std::min(kAtATime, rows.size(0) - row));
    sum.add_(some.to(at::kDouble).sum(0));
  }
  return sum;
}

// Float32, and no part of something larger that would stay in memory with them.
at::Tensor own_rows(const at::Tensor& rows) {
  const auto result = rows.to(at::kFloat).contiguous();
  const auto bytes = static_cast<size_t>(result.numel()) * result.element_size();
  return result.storage().nbytes() > bytes ? result.clone() : result;
}

at::Tensor together(const std::vector<at::Tensor>& pieces) {
  return pieces.size() == 1 ? pieces.front() : at::cat(pieces, 0);
}

}  // namespace

at::Tensor product_of_rows(const at::Tensor& left, const at::Tensor& right) {
  if (left.size(1) * right.size(1) <= kSmallProduct || left.scalar_type() == at::kDouble) {
    return at::mm(left.to(at::kDouble).t(), right.to(at::kDouble));
  }
  const auto dtype = dtype_of_products(left.device());
  at::Tensor sum;
  for (int64_t row = 0; row < left.size(0); row += kRowsAtATime) {
    const auto count = std::min(kRowsAtATime, left.size(0) - row);
    const auto part =
        at::mm(left.narrow(0, row, count).to(dtype).t(), right.narrow(0, row, count).to(dtype));
    sum = sum.defined() ? sum.add_(part) : part.to(at::kDouble);
  }
  return sum;
}

void PairMoments::count(const at::Tensor& source, const at::Tensor& target, int64_t tokens) {
  require<InternalError>(
      source.dim() == 2 && target.dim() == 2 && source.size(0) == target.size(0) &&
          source.size(0) > 0 &&
          (rows == 0 ||
           (source.size(1) == source_sum.size(0) && target.size(1) == target_sum.size(0))),
      "rows ", source.sizes(), " paired with ", target.sizes());
  rows += source.size(0);
  distinct += tokens > 0 ? std::min(tokens, source.size(0)) : source.size(0);
}

void PairMoments::sum_up(const at::Tensor& source, const at::Tensor& target) {
  accumulate(source_sum, sum_of(source));
  accumulate(target_sum, sum_of(target));
  if (source_sum.is_cpu()) {
    require_finite();
  }
}

void PairMoments::require_finite() const {
  require<NumericError>(
      source_sum.isfinite().all().item<bool>() && target_sum.isfinite().all().item<bool>(),
      "an activation is NaN or infinite");
}

Grams grams_between(Grams needed, int64_t source_width, int64_t target_width) {
  return {
      .source = needed.source || source_width <= kGramsAnyway,
      .target = needed.target || target_width <= kGramsAnyway};
}

void PairMoments::add(
    const at::Tensor& source, const at::Tensor& target, Grams grams, int64_t tokens) {
  require<InternalError>(!keeps_rows(), "rows are multiplied where earlier ones are kept");
  count(source, target, tokens);
  const auto all = source.size(0);
  const bool exact = multiplies_float64_fast(source.device());
  const auto at_a_time =
      exact ? std::max<int64_t>(kNumbersAtATime / (source.size(1) + target.size(1)), 1) : all;
  for (int64_t row = 0; row < all; row += at_a_time) {
    const auto part = [&](const at::Tensor& rows) {
      const auto some = rows.narrow(0, row, std::min(at_a_time, all - row));
      return exact ? some.to(at::kDouble) : some;  // once for all that follows
    };
    const auto left = part(source), right = part(target);
    sum_up(left, right);
    accumulate(cross, product_of_rows(left, right));
    if (grams.source) {
      accumulate(source_gram, product_of_rows(left, left));
    }
    if (grams.target) {
      accumulate(target_gram, product_of_rows(right, right));
    }
  }
}

void PairMoments::keep(const at::Tensor& source, const at::Tensor& target, int64_t tokens) {
  require<InternalError>(!cross.defined(), "rows are kept where earlier ones are multiplied");
  count(source, target, tokens);
  sum_up(source, target);
  source_rows.push_back(own_rows(source));
  target_rows.push_back(own_rows(target));
}

std::pair<at::Tensor, at::Tensor> PairMoments::kept() const {
  return {together(source_rows), together(target_rows)};
}

PairMoments PairMoments::multiplied(Grams grams) const {
  PairMoments result;
  const auto [source, target] = kept();
  result.add(source, target, grams, distinct);
  return result;
}

PairMoments PairMoments::centred() const {
  const auto m = static_cast<double>(rows);
  PairMoments result = *this;
  if (keeps_rows()) {
    const auto [source, target] = kept();
    result.source_rows = {source.to(at::kDouble) - source_sum / m};
    result.target_rows = {target.to(at::kDouble) - target_sum / m};
  } else {
    result.cross = cross - at::outer(source_sum, target_sum / m);
  }
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
      {"target_sum", target_sum}};
  if (keeps_rows()) {
    const auto [source, target] = kept();
    result.emplace_back("source_rows", source);
    result.emplace_back("target_rows", target);
  } else {
    result.emplace_back("cross", cross);
  }
  if (source_gram.defined()) {
    result.emplace_back("source_gram", source_gram);
  }
  if (target_gram.defined()) {
    result.emplace_back("target_gram", target_gram);
  }
  return result;
}

PairMoments PairMoments::to(c10::Device device) const {
  std::map<std::string, at::Tensor> moved;
  for (const auto& [name, tensor] : tensors()) {
    moved[name] = tensor.to(device);
  }
  return from(moved);
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
  const auto source = find("source_rows"), target = find("target_rows");
  const auto is_shaped = [](const at::Tensor& tensor, int64_t rows, int64_t columns) {
    return tensor.defined() && tensor.dim() == 2 && tensor.size(0) == rows &&
           tensor.size(1) == columns;
  };
  require(
      count.defined() && distinct.defined() && result.source_sum.defined() &&
          result.target_sum.defined(),
      "these are not moments of paired rows");
  result.rows = count.item<int64_t>();
  result.distinct = distinct.item<int64_t>();
  const auto ds = result.source_sum.numel(), dt = result.target_sum.numel();
  const bool rows_kept = is_shaped(source, result.rows, ds) && is_shaped(target, result.rows, dt);
  require(rows_kept || is_shaped(result.cross, ds, dt), "these are not moments of paired rows");
  if (rows_kept) {
    result.source_rows = {source};
    result.target_rows = {target};
  }
  return result;
}

}  // namespace theseus::stats
