// A linear classifier on the features of a frozen model, fitted on the training split.

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/evaluate/evaluate.h"
#include "theseus/evaluate/features.h"
#include "theseus/evaluate/linear_probe.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

constexpr const char* kNoLabels = "a probe needs labels, and these examples have none";

int64_t count_classes(const data::Examples& examples) {
  return std::max<int64_t>(
      static_cast<int64_t>(examples.classes.size()),
      1 + *std::max_element(examples.labels.begin(), examples.labels.end()));
}

class Probe : public Task {
 public:
  bool trains() const override { return true; }

  void check(
      model::Model&,
      const data::Examples& examples,
      const std::vector<int64_t>&,
      const Settings&) const override {
    require(!examples.labels.empty(), kNoLabels);
  }

  void check_training(
      const data::Examples& measured,
      const data::Examples& seen,
      const std::vector<int64_t>& drawn) const override {
    require(!seen.labels.empty(), kNoLabels);
    require(
        measured.classes.empty() || seen.classes.empty() || seen.classes == measured.classes,
        "the training examples have the classes ", joined(seen.classes, 5), ", the others ",
        joined(measured.classes, 5), ": class i must be the same in both");
    const auto largest = largest_label(seen, drawn);
    require(
        largest < count_classes(measured), "the training examples have label ", largest,
        ", the others have ", count_classes(measured), " classes");
    require(
        only_class(seen, drawn).empty(),
        "all training examples are of one class: there is nothing to tell apart");
  }

  void begin(
      model::Model&,
      model::Reader&,
      const data::Examples& examples,
      const Settings& settings) override {
    settings_ = settings;
    classes_ = count_classes(examples);
  }

  void learn(model::Model& model, const Step& step, const data::Examples& examples) override {
    features_.push_back(features_of(model.forward(step.batch), step.batch));
    labels_.push_back(labels_of(examples, step));
  }

  void fit() override {
    const auto labels = at::cat(labels_);
    const auto features = at::cat(features_);
    probe_ = fit_probe(features, labels, classes_, settings_);
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
