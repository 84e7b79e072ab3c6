// With g the gradient of the loss at the target's own weights and d the update,
//
//   normal:  d[i] if sign(d[i]) = sign(-g[i]), else 0          force:  |d[i]| sign(-g[i])
//
// so that to first order, g . d, no entry makes the loss larger.

#include "theseus/gradient/signs.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"

namespace theseus::gradient {

Vote vote_of(const std::string& word) {
  require(
      word == "mean" || word == "majority", "vote '", word, "' is none of: mean majority",
      machine::did_you_mean(word, "mean majority"));
  return word == "mean" ? Vote::kMean : Vote::kMajority;
}

Mask mask_of(const std::string& word) {
  require(
      word == "normal" || word == "force", "mask '", word, "' is none of: normal force",
      machine::did_you_mean(word, "normal force"));
  return word == "normal" ? Mask::kNormal : Mask::kForce;
}

Signs::Signs(model::Model& model, Loss loss, const std::vector<std::string>& tensors, Vote vote)
    : trainable_(model), loss_(std::move(loss)), vote_(vote) {
  for (const auto& tensor : tensors) {
    trainable_.train(tensor);
  }
}

void Signs::vote() {
  for (const auto& [name, leaf] : trainable_.leaves()) {
    if (leaf.grad().defined()) {
      const auto sign = leaf.grad().sign().neg().to(at::kInt);
      auto& sum = votes_[name];
      sum = sum.defined() ? sum.add_(sign) : sign;
    }
  }
  trainable_.forget_gradients();
}

void Signs::add(const Labelled& batch) {
  const auto count = [&](const Measured& measured) {
    sum_.loss += measured.loss * static_cast<double>(measured.count);
    sum_.count += measured.count;
    sum_.right += measured.right;
  };
  if (vote_ == Vote::kMean) {
    count(add_gradients(trainable_, loss_, batch));
    return;
  }
  for (int64_t i = 0; i < batch.size(); ++i) {
    const auto one = batch.part(i, 1);
    if (one.asked() > 0) {  // a text may have nothing to predict, and then no vote
      count(add_gradients(trainable_, loss_, one));
      vote();
    }
  }
}

Measured Signs::measured() const {
  require(sum_.count > 0, "no example has a label to learn from");
  auto mean = sum_;
  mean.loss /= static_cast<double>(sum_.count);
  return mean;
}

std::map<std::string, at::Tensor> Signs::result() const {
  std::map<std::string, at::Tensor> signs;
  if (vote_ == Vote::kMajority) {
    for (const auto& [name, sum] : votes_) {
      signs[name] = sum.sign().to(at::kCPU, at::kChar);
    }
    return signs;
  }
  for (const auto& [name, leaf] : trainable_.leaves()) {
    if (leaf.grad().defined()) {
      signs[name] = leaf.grad().sign().neg().to(at::kCPU, at::kChar);
    }
  }
  return signs;
}

at::Tensor masked(const at::Tensor& delta, const at::Tensor& signs, Mask mask) {
  require<InternalError>(
      delta.sizes() == signs.sizes(), "an update ", delta.sizes(), " and signs ", signs.sizes());
  const auto down = signs.to(delta.options());
  switch (mask) {
    case Mask::kNone:
      return delta;
    case Mask::kNormal:
      return at::where(delta.sign() == down, delta, at::zeros_like(delta));
    case Mask::kForce:
      return delta.abs() * down;
  }
  throw InternalError("no such mask");
}

double agreement(const at::Tensor& delta, const at::Tensor& signs) {
  const auto there = delta != 0;
  const auto all = there.sum().item<int64_t>();
  const auto same =
      (delta.sign() == signs.to(delta.options())).logical_and(there).sum().item<int64_t>();
  return all == 0 ? 1 : static_cast<double>(same) / static_cast<double>(all);
}

}  // namespace theseus::gradient
