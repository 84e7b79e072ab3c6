// With b the base's weights and t the tuned ones: |t - b| / |b| is below 0.2 for every fine-tune that we have seen,
// and cos(t, b) above 0.98. Of two models trained apart, or of random numbers, the cosine is near 0 and so the
// distance at least 1. Between the two lies 0.5, which is where the warning begins.

#include "theseus/transport/kinship.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/text.h"

namespace theseus::transport {
namespace {

constexpr double kFar = 0.5;
constexpr double kUnlike = 0.5;
constexpr size_t kShown = 3;  // names in a note

struct Sums {
  double apart = 0, base = 0, tuned = 0, both = 0;

  void add(const Sums& other) {
    apart += other.apart;
    base += other.base;
    tuned += other.tuned;
    both += other.both;
  }
  double relative() const { return base > 0 ? std::sqrt(apart / base) : 0; }
  double cosine() const { return base > 0 && tuned > 0 ? both / std::sqrt(base * tuned) : 1; }
};

Sums sums_of(const SourceUpdate& update, const model::Parameter& parameter) {
  const auto sample = update.sample(parameter);
  const auto base = sample.base.to(at::kDouble), delta = sample.delta.to(at::kDouble);
  const auto tuned = base + delta;
  const auto product = [](const at::Tensor& left, const at::Tensor& right) {
    return (left * right).sum().item<double>();
  };
  // Each weight counts by its size, not by the size of its sample.
  const double weight = static_cast<double>(c10::multiply_integers(parameter.shape)) /
                        static_cast<double>(base.numel());
  return {
      .apart = weight * product(delta, delta),
      .base = weight * product(base, base),
      .tuned = weight * product(tuned, tuned),
      .both = weight * product(tuned, base)};
}

bool is_looked_at(const model::Parameter& parameter) {
  return parameter.role == model::Role::kWeight &&
         std::none_of(parameter.axes.begin(), parameter.axes.end(), [](const auto& axis) {
           return model::is_fixed(axis);
         });
}

}  // namespace

Kinship kinship_of(const SourceUpdate& update, const model::Architecture& source) {
  Kinship kinship;
  Sums all;
  for (const auto& parameter : source.parameters) {
    if (!is_looked_at(parameter) || !update.changes(parameter)) {
      continue;
    }
    const auto sums = sums_of(update, parameter);
    all.add(sums);
    ++kinship.changed;
    if (sums.relative() > kFar && sums.cosine() < kUnlike) {
      kinship.replaced.push_back(parameter.name);
    }
  }
  kinship.relative = all.relative();
  kinship.cosine = all.cosine();
  return kinship;
}

std::vector<std::string> notes_on_kinship(const Kinship& kinship) {
  const auto rounded = [](double value) { return std::round(value * 100) / 100; };
  if (kinship.relative > kFar || kinship.cosine < kUnlike) {
    return {c10::str(
        "the tuned model hardly looks like a tune of this source: its weights differ by ",
        rounded(kinship.relative),
        " of the source's norm (a fine-tune by some percent), and their "
        "cosine is ",
        rounded(kinship.cosine),
        kinship.cosine < kUnlike
            ? "; is it a tune of another base, or were its weights never loaded?"
            : "; is the source the base that it was tuned from?")};
  }
  if (!kinship.replaced.empty()) {
    return {c10::str(
        kinship.replaced.size(), " of ", kinship.changed,
        " weights of the tuned model have nothing to do with the source's, as if they had been "
        "initialised anew: ",
        joined(kinship.replaced, kShown))};
  }
  return {};
}

}  // namespace theseus::transport
