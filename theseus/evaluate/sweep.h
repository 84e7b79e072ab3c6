#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <nlohmann/json.hpp>

#include "theseus/evaluate/evaluate.h"
#include "theseus/evaluate/strengths.h"
#include "theseus/output/job.h"

namespace theseus::evaluate {

// Deltas by the target's own tensor names, unscaled.
using Update = std::map<std::string, at::Tensor>;

// A model with an update of any strength, until this goes. Both must outlive it.
class Strengthened {
 public:
  Strengthened(model::Model& model, const Update& update);
  ~Strengthened();
  Strengthened(const Strengthened&) = delete;
  Strengthened& operator=(const Strengthened&) = delete;

  void set(double alpha);

 private:
  model::Model& model_;
  const Update& update_;
  Update base_;
};

// An update as 'transport --write update' writes it: the file, or the directory that holds it. Throws
// InputError unless every tensor is one of the model's, with its shape.
Update read_update(const std::string& path, const model::Model& model);

// Carries it through options.alignment, and keeps no file of it.
Update carry_update(const output::JobOptions& options, const model::Model& model);

// "WORDS=FACTOR": deltas of tensors with WORDS in their names times FACTOR, one after the other. Throws
// InputError for what is no such thing, or when no tensor has the words.
void scale(Update& update, const std::vector<std::string>& scales);

// The examples that sweep() would choose by, and the task's word. Throws InputError for what can be told before the
// model runs.
struct Choosing {
  data::Examples examples;
  std::vector<int64_t> order;
  std::string word;
  std::vector<std::string> notes;  // as of Measuring
};
Choosing open_choosing(model::Model& model, const EvaluateOptions& options);

// Measures model + alpha * update for each alpha, on examples that are read and preprocessed once. The
// curve, the best, and the model without the update. Throws InputError.
nlohmann::ordered_json sweep(
    model::Model& model,
    const Update& update,
    const EvaluateOptions& options,
    const Strengths& strengths,
    const Watch& watch);

}  // namespace theseus::evaluate
