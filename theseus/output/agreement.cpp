#include "theseus/output/agreement.h"

#include <cmath>
#include <vector>

#include <ATen/ATen.h>

#include "theseus/model/replaced.h"
#include "theseus/transport/source_update.h"

namespace theseus::output {
namespace {

struct Said {
  at::Tensor what;      // int64 [rows]
  int64_t classes = 0;  // it was chosen from; 0: nothing was said
};

// What a model says to one batch. Padding is left out of a causal model's places.
Said said_to(model::Model& model, const model::Batch& batch) {
  const auto outputs = model.forward(batch);
  const auto found = outputs.find("logits");
  if (found == outputs.end() || found->second.dim() < 2 || found->second.dim() > 3) {
    return {};
  }
  const auto logits = found->second.to(at::kCPU);
  auto what = logits.argmax(-1);  // [n] or [n, t]
  const auto mask = batch.find("attention_mask");
  if (what.dim() == 2 && mask != batch.end() && mask->second.sizes() == what.sizes()) {
    what = what.masked_select(mask->second.to(at::kCPU) != 0);
  }
  return {.what = what.flatten(), .classes = logits.size(-1)};
}

Said said_by(model::Model& model, const stats::Calibration& inputs, bool source) {
  std::vector<at::Tensor> parts;
  int64_t classes = 0;
  for (int64_t batch = 0; batch < inputs.batches(); ++batch) {
    const auto said = said_to(model, source ? inputs.source(batch) : inputs.target(batch));
    if (said.classes == 0 || (classes > 0 && said.classes != classes)) {
      return {};
    }
    classes = said.classes;
    parts.push_back(said.what);
  }
  return {.what = at::cat(parts), .classes = classes};
}

double share(const at::Tensor& left, const at::Tensor& right) {
  return (left == right).to(at::kDouble).mean().item<double>();
}

}  // namespace

double Agreement::gain() const {
  return before < 1 ? (after - before) / (1 - before) : 0;
}

double Agreement::error() const {
  const auto count = static_cast<double>(rows);
  const auto variance =
      [&](double share) {  // with one more of each kind: few rows are never certain
        const auto drawn = (share * count + 1) / (count + 2);
        return drawn * (1 - drawn);
      };
  return before < 1 ? 2 * std::sqrt((variance(before) + variance(after)) / count) / (1 - before)
                    : 0;
}

std::optional<Agreement> find_agreement(
    Opened& opened,
    const stats::Calibration& inputs,
    const Deltas& carried,
    const std::vector<double>& strengths,
    const at::Tensor& as_source) {
  Said wanted;
  {
    const auto update = transport::whole_deltas(*opened.update, opened.source.architecture());
    const model::Replaced tuned(opened.source, transport::with_deltas(opened.source, update));
    wanted = said_by(opened.source, inputs, true);
  }
  if (wanted.classes == 0) {
    return std::nullopt;
  }
  const auto by_target = [&] {
    auto said = said_by(opened.target, inputs, false);
    if (as_source.defined() && said.classes == as_source.size(0)) {
      said.what = as_source.index_select(0, said.what);
    }
    return said;
  };
  const auto base = by_target();
  if (base.classes != wanted.classes || base.what.numel() != wanted.what.numel()) {
    return std::nullopt;
  }
  std::map<std::string, at::Tensor> deltas;
  for (const auto& parameter : opened.target.architecture().parameters) {
    if (deltas.contains(parameter.tensor)) {
      continue;  // another part of it
    }
    if (const auto delta = carried(parameter.tensor); delta.defined()) {
      deltas[parameter.tensor] = delta;
    }
  }
  std::optional<Agreement> best;
  for (const auto alpha : strengths) {
    const model::Replaced updated(
        opened.target, transport::with_deltas(opened.target, deltas, alpha));
    const auto after = share(by_target().what, wanted.what);
    if (!best || after > best->after) {
      best = {share(base.what, wanted.what), after, wanted.what.numel(), alpha};
    }
  }
  return best;
}

}  // namespace theseus::output
