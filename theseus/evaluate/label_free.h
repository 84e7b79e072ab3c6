#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "theseus/evaluate/sweep.h"

namespace theseus::evaluate {

// The change that an update should repeat.
struct SourceChange {
  std::string alignment;  // maps onto the target
  std::string tuned;      // model directory, state dict or adapter
  std::string source;     // the base; empty: where the alignment says it is
};

// As sweep(), without labels: the strength at which the target's features change most like the source's
// did. Over examples x, with S and R the features (features_of) of the two bases,
//
//   wanted(x)    = u (S_tuned(x) - S(x)) T,    T the alignment's map of the feature space,
//   change(x, a) = R_{target + a update}(x) - R(x),
//   agreement(a) = 1 - sum |change - wanted|^2 / sum |wanted|^2:
//
// the share of the wanted change that is there. The unit u makes up for features that are larger in one
// model: it is the spread of R over the spread of S T. The cosine of the two changes cannot choose: of a
// small update it is the same at every strength. It stands in the curve beside the agreement, as `cosine`,
// and so does the agreement of the changes about their means, as `centred`. Of a causal model the features are the
// log-probabilities of every next token (spoken.h), which need no map: T = 1, u = 1. Throws InputError.
nlohmann::ordered_json sweep_without_labels(
    model::Model& model,
    const Update& update,
    const SourceChange& from,
    const EvaluateOptions& options,
    const Strengths& strengths,
    const Watch& watch);

}  // namespace theseus::evaluate
