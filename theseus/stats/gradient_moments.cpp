#include "theseus/stats/gradient_moments.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/stats/supervision.h"

namespace theseus::stats {
namespace {

// The rows of output `part` of a layer, which may write several spaces side by side.
at::Tensor part_of(
    const model::Architecture& architecture,
    const model::Linear& layer,
    size_t part,
    const at::Tensor& rows) {
  int64_t first = 0;
  for (size_t i = 0; i < part; ++i) {
    first += architecture.spaces.at(layer.out[i]).width;
  }
  return rows.narrow(-1, first, architecture.spaces.at(layer.out[part]).width);
}

int64_t grid_of(const model::Architecture& architecture, const std::string& tower) {
  for (const auto& candidate : architecture.towers) {
    if (candidate.name == tower) {
      return candidate.grid();
    }
  }
  return 0;
}

// Tokens with a gradient, padding left out.
int64_t tokens_with_gradient(const Sequences& side) {
  const auto there = side.rows.ne(0).any(-1);
  return (side.kept.defined() ? there.logical_and(side.kept) : there).sum().item<int64_t>();
}

at::Tensor find(const std::map<std::string, at::Tensor>& tensors, const std::string& name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? at::Tensor() : found->second;
}

}  // namespace

GradientMoments::GradientMoments(
    model::Model& source, model::Model& target, const Route& route, Collect collect)
    : source_(source), target_(target), route_(route), collect_(std::move(collect)) {
  find_writers();
}

void GradientMoments::find_writers() {
  const auto& from = source_.architecture();
  const auto& to = target_.architecture();
  const auto add = [&](int64_t stage, int64_t source_block, int64_t target_block,
                       size_t source_step, size_t target_step) {
    for (const auto& layer : to.linears) {
      if (layer.block != target_block) {
        continue;
      }
      const auto role = to.role(layer.module, layer.block);
      const auto other =
          std::find_if(from.linears.begin(), from.linears.end(), [&](const auto& it) {
            return it.block == source_block && from.role(it.module, it.block) == role;
          });
      for (size_t part = 0; part < layer.out.size() && other != from.linears.end(); ++part) {
        if (collect_.observed.contains(layer.out[part])) {
          writers_.push_back({&*other, &layer, part, stage, source_step, target_step});
        }
      }
    }
  };
  for (size_t i = 0; i < route_.pairs.size(); ++i) {
    const auto& pair = route_.pairs[i];
    const auto step = static_cast<size_t>(pair.source);
    add(static_cast<int64_t>(i) + 1, route_.source[step].run_as, pair.target, step,
        static_cast<size_t>(pair.target));
  }
  add(static_cast<int64_t>(route_.pairs.size()) + 1, model::kOuter, model::kOuter,
      route_.source.size(), static_cast<size_t>(to.blocks()));
}

gradient::Steps GradientMoments::source_steps() {
  return {
      .count = static_cast<int64_t>(route_.source.size()),
      .run = [this](int64_t step, model::Pass& pass) {
        run_source_block(source_, route_.source[static_cast<size_t>(step)], pass);
      }};
}

void GradientMoments::add(const Calibration& calibration, int64_t batch) {
  if (!source_loss_) {
    source_loss_ = loss_of(source_, calibration, Side::kSource);
    target_loss_ = loss_of(target_, calibration, Side::kTarget);
  }
  const auto left = calibration.labelled(Side::kSource, batch);
  const auto right = calibration.labelled(Side::kTarget, batch);
  if (left.batch.empty() || left.asked() == 0 || right.asked() == 0) {
    return;  // a batch of other inputs
  }
  std::set<std::string> from, to;
  for (const auto& writer : writers_) {
    from.insert(writer.source->module);
    to.insert(writer.target->module);
  }
  const auto source = with_context("going back through the source", [&] {
    return gradient::output_gradients(source_, source_loss_, left, source_steps(), from);
  });
  const auto target = with_context("going back through the target", [&] {
    return gradient::output_gradients(
        target_, target_loss_, right, gradient::own_blocks(target_), to);
  });
  const auto inputs = calibration.pair(batch);
  for (const auto& writer : writers_) {
    with_context("pairing the gradients of " + writer.target->out[writer.part], [&] {
      add_pair(writer, source, target, inputs);
    });
  }
}

void GradientMoments::add_pair(
    const Writer& writer,
    const gradient::StepGradients& source,
    const gradient::StepGradients& target,
    const PairedBatch& inputs) {
  const auto& left = source.steps.at(writer.source_step);
  const auto& right = target.steps.at(writer.target_step);
  const auto of_source = left.find(writer.source->module);
  const auto of_target = right.find(writer.target->module);
  if (of_source == left.end() || of_target == right.end()) {
    return;
  }
  const auto& from = source_.architecture();
  const auto& to = target_.architecture();
  const auto tower = model::tower_of_space(writer.target->in);
  const Sequences source_rows{
      .rows = part_of(from, *writer.source, writer.part, of_source->second.gradient),
      .kept = find(source.kept, tower),
      .grid = grid_of(from, tower),
      .spans = find_spans(inputs.source_spans, inputs.source, tower)};
  const Sequences target_rows{
      .rows = part_of(to, *writer.target, writer.part, of_target->second.gradient),
      .kept = find(target.kept, tower),
      .grid = grid_of(to, tower),
      .spans = find_spans(inputs.target_spans, inputs.target, tower)};
  const bool tokens = target_rows.rows.dim() == 3;
  const auto distinct =
      tokens ? std::min(tokens_with_gradient(source_rows), tokens_with_gradient(target_rows))
             : std::min(
                   source_rows.rows.ne(0).any(-1).sum().item<int64_t>(),
                   target_rows.rows.ne(0).any(-1).sum().item<int64_t>());
  if (distinct == 0) {
    return;
  }
  const auto paired = tokens ? collect_.matchers.at(tower)->match(source_rows, target_rows)
                             : PairedRows{source_rows.rows, target_rows.rows};
  moments_[writer.stage][writer.target->out[writer.part]].add(
      paired.source, paired.target, collect_.grams, distinct);
}

}  // namespace theseus::stats
