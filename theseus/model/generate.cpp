#include "theseus/model/generate.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/model/layers.h"

namespace theseus::model {
namespace {

// Where each token stands in its row, not counting the padding before it.
at::Tensor positions_of(const at::Tensor& mask) {
  return (mask.to(at::kLong).cumsum(-1) - 1).clamp_min(0);
}

at::Tensor first_tokens(const Generation& generation, const Pass& pass) {
  if (generation.start.empty()) {
    const auto prompt = pass.find_input(generation.grows);
    require(prompt.defined(), "input ", generation.grows, " is missing");
    return prompt.to(at::kLong);
  }
  const auto prompt = pass.find_input("input_ids");
  require(prompt.defined(), "input input_ids is missing");
  return at::full({prompt.size(0), 1}, generation.start.front(), prompt.options().dtype(at::kLong));
}

// An encoder-decoder's mask is of its encoder, and its decoder needs no positions.
bool has_prompt_mask(const Pass& pass, const Generation& generation) {
  return generation.start.empty() && pass.batch.contains("attention_mask");
}

void feed_prompt(Pass& pass, const Generation& generation, const at::Tensor& tokens) {
  pass.batch[generation.grows] = tokens;
  if (has_prompt_mask(pass, generation)) {
    const auto mask = checked_mask(pass, "attention_mask", tokens.sizes());
    pass.batch["position_ids"] = positions_of(mask);
  }
}

// Makes the next pass one of `tokens` alone, after what the cache holds.
void feed_next(Pass& pass, const Generation& generation, const at::Tensor& tokens) {
  pass.batch[generation.grows] = tokens;
  if (has_prompt_mask(pass, generation)) {
    auto& mask = pass.batch.at("attention_mask");
    mask = at::cat({mask, at::ones_like(tokens, mask.options())}, 1);
    pass.batch["position_ids"] = positions_of(mask).narrow(1, mask.size(1) - 1, 1);
  }
}

at::Tensor continued(Model& model, const Batch& batch, const GreedyOptions& options) {
  const auto& generation = model.architecture().generation;
  Cache cache;
  auto pass = model.begin(batch);
  pass.cache = &cache;
  pass.last_token_only = true;
  auto sequences = first_tokens(generation, pass);  // [n, t]
  feed_prompt(pass, generation, sequences);
  auto done = at::zeros({sequences.size(0), 1}, sequences.options().dtype(at::kBool));
  for (int64_t i = 0; i < options.new_tokens; ++i) {
    model.run(pass);
    const auto logits = pass.outputs.at("logits").select(1, -1);  // [n, v]
    require<NumericError>(all_finite(logits), "logits hold NaN or infinity");
    auto next = logits.argmax(-1, /*keepdim=*/true);  // [n, 1]
    next = next.masked_fill(done, generation.pad);
    sequences = at::cat({sequences, next}, 1);
    if (options.watch) {
      options.watch(i + 1, options.new_tokens);
    }
    if (!options.ignore_end) {
      done = done.logical_or(ended(next, generation.end));
    }
    if (done.all().item<bool>()) {
      break;
    }
    feed_next(pass, generation, next);
  }
  return sequences;
}

}  // namespace

at::Tensor ended(const at::Tensor& tokens, const std::vector<int64_t>& end) {
  auto hit = at::zeros_like(tokens, at::kBool);
  for (const auto id : end) {
    hit = hit.logical_or(tokens.eq(id));
  }
  return hit;
}

void require_can_generate(const Model& model) {
  const auto& generation = model.architecture().generation;
  require(
      generation.possible, "a ", model.location().family, " model (", model.architecture().variant,
      ") has no language head to generate with");
  require(generation.refused.empty(), generation.refused);
}

at::Tensor greedy(Model& model, const Batch& batch, const GreedyOptions& options) {
  require_can_generate(model);
  require(
      options.new_tokens > 0, "the number of new tokens must be positive, found ",
      options.new_tokens);
  return with_context("generating with " + model.location().weights.string(), [&] {
    return continued(model, batch, options);
  });
}

}  // namespace theseus::model
