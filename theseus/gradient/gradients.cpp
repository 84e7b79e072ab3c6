// With L = (1 / count) sum_i -log p_i over a whole batch, parts of the batch add up: each gives the
// gradient of its own sum over the whole batch's count.

#include "theseus/gradient/gradients.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "theseus/base/error.h"

namespace theseus::gradient {
namespace {

template <class Take>
Measured in_parts(
    model::Model& model,
    const Loss& loss,
    const Labelled& batch,
    int64_t at_a_time,
    const Take& take) {
  const auto asked = batch.asked();
  require(asked > 0, "nothing is asked for: these texts have no token to predict");
  const auto all = batch.size();
  const auto some = at_a_time > 0 ? at_a_time : all;
  Measured measured;
  for (int64_t first = 0; first < all; first += some) {
    const auto part = batch.part(first, std::min(some, all - first));
    const auto judged = loss(model.forward(part.batch), part);
    const auto sum = judged.sum.detach().item<double>();
    require<NumericError>(std::isfinite(sum), "the loss is not finite");
    take(judged.sum / static_cast<double>(asked));
    measured.loss += sum / static_cast<double>(asked);
    measured.count += judged.count;
    measured.right += judged.right;
  }
  return measured;
}

// Keeps outputs of linear layers, and asks for their gradients.
class KeepOutputs final : public model::Taps {
 public:
  explicit KeepOutputs(const std::set<std::string>& modules) : modules_(modules) {}

  void linear(const std::string& module, const at::Tensor&, const at::Tensor& output) override {
    if (output.requires_grad() && (modules_.empty() || modules_.contains(module))) {
      output.retain_grad();
      steps.back()[module] = output;
    }
  }
  std::vector<std::map<std::string, at::Tensor>> steps{1};

 private:
  const std::set<std::string>& modules_;
};

}  // namespace

Measured add_gradients(
    Trainable& trainable, const Loss& loss, const Labelled& batch, int64_t at_a_time) {
  const c10::AutoGradMode gradients(true);
  trainable.refresh();
  return in_parts(trainable.model(), loss, batch, at_a_time, [&](const at::Tensor& share) {
    require(share.requires_grad(), "the loss reaches nothing that is trained");
    share.backward();
    trainable.refresh();
  });
}

Measured measure(model::Model& model, const Loss& loss, const Labelled& batch, int64_t at_a_time) {
  const c10::NoGradGuard no_gradients;
  return in_parts(model, loss, batch, at_a_time, [](const at::Tensor&) {});
}

Steps own_blocks(const model::Model& model) {
  return {.count = model.architecture().blocks(), .run = [&model](int64_t step, model::Pass& pass) {
            model.run_block(step, pass);
          }};
}

// A graph begins where the blocks do, so that it holds every layer and no weight.
StepGradients output_gradients(
    model::Model& model,
    const Loss& loss,
    const Labelled& batch,
    const Steps& steps,
    const std::set<std::string>& modules) {
  const c10::AutoGradMode gradients(true);
  KeepOutputs taps(modules);
  auto pass = model.begin(batch.batch, &taps);
  model.network().enter(pass);
  for (const auto& tower : model.architecture().towers) {
    if (const auto found = pass.streams.find(tower.name); found != pass.streams.end()) {
      found->second = found->second.detach().set_requires_grad(true);
    }
  }
  for (int64_t i = 0; i < steps.count; ++i) {
    steps.run(i, pass);
    taps.steps.emplace_back();
  }
  model.network().leave(pass);
  const auto judged = loss(pass.outputs, batch);
  require(judged.count > 0, "nothing is asked for: these texts have no token to predict");
  require<NumericError>(std::isfinite(judged.sum.item<double>()), "the loss is not finite");
  (judged.sum / static_cast<double>(judged.count)).backward();
  StepGradients result{.kept = pass.kept};
  for (const auto& outputs : taps.steps) {
    auto& found = result.steps.emplace_back();
    for (const auto& [module, output] : outputs) {
      if (output.grad().defined()) {
        found[module] = {.output = output.detach(), .gradient = output.grad()};
      }
    }
  }
  return result;
}

std::map<std::string, OutputGradient> output_gradients(
    model::Model& model, const Loss& loss, const Labelled& batch) {
  std::map<std::string, OutputGradient> all;
  for (auto& step : output_gradients(model, loss, batch, own_blocks(model)).steps) {
    all.merge(step);
  }
  return all;
}

}  // namespace theseus::gradient
