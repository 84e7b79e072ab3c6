// A linear classifier on the features of a frozen model, fitted on the training split.

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/evaluate/features.h"
#include "theseus/evaluate/linear_probe.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

class Probe : public Task {
 public:
  bool trains() const override { return true; }

  void begin(
      model::Model&,
      model::Reader&,
      const data::Examples& examples,
      const Settings& settings) override {
    settings_ = settings;
    names_ = examples.classes;
    require(!examples.labels.empty(), "a probe needs labels, and these examples have none");
    classes_ = std::max<int64_t>(
        static_cast<int64_t>(examples.classes.size()),
        1 + *std::max_element(examples.labels.begin(), examples.labels.end()));
  }

  void learn(model::Model& model, const Step& step, const data::Examples& examples) override {
    require(
        names_.empty() || examples.classes.empty() || examples.classes == names_,
        "the training examples have the classes ", joined(examples.classes, 5), ", the others ",
        joined(names_, 5), ": class i must be the same in both");
    features_.push_back(features_of(model.forward(step.batch), step.batch));
    labels_.push_back(labels_of(examples, step));
  }

  void fit() override {
    const auto labels = at::cat(labels_);
    require(
        labels.max().item<int64_t>() < classes_, "the training examples have label ",
        labels.max().item<int64_t>(), ", the others have ", classes_, " classes");
    require(
        (labels != labels[0]).any().item<bool>(),
        "all training examples are of one class: there is nothing to tell apart");
    const auto features = at::cat(features_);
    probe_ = settings_.ridge ? fit_ridge(features, labels, classes_, settings_.strength)
                             : fit_logistic(features, labels, classes_, settings_.strength);
    features_.clear();
  }

  void add(model::Model& model, const Step& step, const data::Examples& examples) override {
    const auto scores = probe_.scores(features_of(model.forward(step.batch), step.batch));
    right_ += (scores.argmax(1) == labels_of(examples, step)).sum().item<int64_t>();
    all_ += scores.size(0);
  }

  Score score() const override { return accuracy(right_, all_); }

 private:
  Settings settings_;
  std::vector<std::string> names_;
  int64_t classes_ = 0, right_ = 0, all_ = 0;
  std::vector<at::Tensor> features_, labels_;
  LinearProbe probe_;
};

}  // namespace

const TaskKind& probe() {
  static const TaskKind kind = {
      .summary = "accuracy of a linear probe that is fitted on the training split",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<Probe>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
