#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "theseus/evaluate/evaluate.h"
#include "theseus/transport/alignment.h"

namespace theseus::evaluate {

// A linear classifier that is no part of the model it is used with.
struct Head {
  at::Tensor weight;   // [c, d] float32 on the CPU
  at::Tensor bias;     // [c]
  std::string space;   // what it reads, by the model's name of it
  std::string output;  // the model's output with rows of that space; empty: features_of()
  std::vector<std::string> classes = {};  // by name; empty: they have none
  nlohmann::ordered_json about = {};      // where it comes from, for the record

  // Throws InputError when the model gives nothing that the head could read.
  at::Tensor logits(const model::Outputs& outputs, const model::Batch& batch) const;  // [n, c]
};

// Puts a head that lies beside a bare encoder (output/sentence_head.h) into its passes, unless an adapter has
// brought one.
void take_own_head(model::Model& model);

// The classification head of a model, one that its adapter brought, or one that lies beside it. Its weight is undefined when the
// model has none.
Head find_head(model::Model& model);

// For a model without one: the probe of options.settings on its features, fitted on the training
// examples of `options`.
Head fitted_head(model::Model& model, const EvaluateOptions& options, const Watch& watch);

// The head for the target of an alignment: W T, with T the map of the space it reads, and the same bias.
// Where that space has no map, but the one before its activation function has, which has the same units,
// that one is taken and `about` says so. Throws InputError when there is neither.
Head carried(
    const Head& head,
    const model::Architecture& source,
    const model::Architecture& target,
    const transport::Alignment& alignment);

// What a reader should know about a head.
std::vector<std::string> notes_on_head(const Head& head);

// All of it: the head of `tuned`, a model directory or an adapter of the alignment's source, or one that
// is fitted on it, for `target`.
Head carry_head(
    const std::string& tuned,
    const std::string& alignment,
    const model::Model& target,
    const EvaluateOptions& options,
    const Watch& watch);

}  // namespace theseus::evaluate
