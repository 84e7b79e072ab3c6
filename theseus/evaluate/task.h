#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/base/plugin.h"
#include "theseus/data/examples.h"
#include "theseus/evaluate/score.h"
#include "theseus/model/model.h"
#include "theseus/model/reader.h"

namespace theseus::evaluate {

struct Head;  // head.h

struct Settings {
  std::vector<std::string> templates;  // zero-shot prompts; empty: those of the data
  // None where nobody said; then 1, false and 64.
  std::optional<double>
      strength;               // of the probe's weight decay, as C of libraries: larger is weaker
  std::optional<bool> ridge;  // the probe by closed form
  std::optional<int64_t> new_tokens;  // of a summary
  std::shared_ptr<const Head> head;   // classify by this one; null: by the model's own
};

// One example after the other as a model's inputs, with its place among the examples.
struct Step {
  model::Batch batch;
  std::vector<int64_t> examples;
  at::Tensor answers;  // ids that should be written [n, t], negative: not asked for; or undefined
  std::vector<std::string> wanted;  // the same as text
};

// What is measured of a model, in one pass over examples. A task is asked: begin, learn for every step
// of the training examples and fit if it trains, add for every step, score.
class Task {
 public:
  virtual ~Task() = default;
  virtual bool trains() const { return false; }
  // What can be refused before the model runs: examples, those at `order`, that it cannot be measured on, and examples to
  // learn from, those of `seen` at `drawn`, that do not go with them. Both throw InputError.
  virtual void check(
      model::Model&,
      const data::Examples&,
      const std::vector<int64_t>& /*order*/,
      const Settings&) const {}
  virtual void check_training(
      const data::Examples& /*measured*/,
      const data::Examples& /*seen*/,
      const std::vector<int64_t>& /*drawn*/) const {}
  // Checked before.
  virtual void begin(
      model::Model& model,
      model::Reader& reader,
      const data::Examples& examples,
      const Settings& settings) = 0;
  virtual void learn(model::Model&, const Step&, const data::Examples&) {}
  virtual void fit() {}
  virtual void add(model::Model& model, const Step& step, const data::Examples& examples) = 0;
  virtual Score score() const = 0;
  // A task as begin() left this one, for a model whose text tower is the same; null: begin anew.
  virtual std::unique_ptr<Task> again() const { return nullptr; }
};

// One file in evaluate/tasks/.
struct TaskKind {
  std::string_view summary;
  std::unique_ptr<Task> (*make)();
};

std::span<const Plugin<TaskKind>> all_tasks();

// By its word on the command line, with '-' for '_'. Throws InputError.
std::unique_ptr<Task> make_task(const std::string& word);
// What this model and these data are measured by when nothing is said. Throws InputError when several
// or none would do.
std::string task_for(const model::Model& model, const data::Examples& examples);

// The largest of those at `order`, of examples that have labels.
int64_t largest_label(const data::Examples& examples, const std::vector<int64_t>& order);
// The label of each example of the step. Throws InputError for unlabelled ones.
at::Tensor labels_of(const data::Examples& examples, const Step& step);  // int64 [n]

}  // namespace theseus::evaluate
