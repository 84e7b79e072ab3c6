// The model's own head, or one that was carried to it.

#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/evaluate/head.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

std::string labels_text(const data::Examples& examples) {
  constexpr size_t kShown = 10;
  std::vector<std::string> words;
  for (const auto label : std::set(examples.labels.begin(), examples.labels.end())) {
    words.push_back(c10::str(label));
  }
  return joined(words, kShown) + " (numbers are taken as they are; names of classes are counted)";
}

class Classify : public Task {
 public:
  void begin(
      model::Model&,
      model::Reader&,
      const data::Examples& examples,
      const Settings& settings) override {
    require(!examples.labels.empty(), "these examples have no labels to compare with");
    classes_ = static_cast<int64_t>(examples.classes.size());
    head_ = settings.head;
  }

  void add(model::Model& model, const Step& step, const data::Examples& examples) override {
    const auto logits = logits_of(model, step);  // [n, c]
    require(
        classes_ == 0 || logits.size(1) == classes_, "the head has ", logits.size(1),
        " classes and the data ", classes_);
    const auto labels = labels_of(examples, step);
    const auto largest = labels.max().item<int64_t>();
    require(
        largest < logits.size(1), "label ", largest, " is beyond the head's ", logits.size(1),
        " classes, 0 to ", logits.size(1) - 1, "; the labels here are ", labels_text(examples));
    right_ += (logits.argmax(1) == labels).sum().item<int64_t>();
    all_ += labels.size(0);
  }

  Score score() const override { return accuracy(right_, all_); }

 private:
  at::Tensor logits_of(model::Model& model, const Step& step) const {
    const auto outputs = model.forward(step.batch);
    if (head_) {
      return head_->logits(outputs, step.batch);
    }
    const auto found = outputs.find("logits");
    require(
        found != outputs.end() && found->second.dim() == 2,
        "this model has no classification head; use --task probe or zero-shot, or --head");
    return found->second.to(at::kCPU);
  }

  std::shared_ptr<const Head> head_;
  int64_t classes_ = 0, right_ = 0, all_ = 0;
};

}  // namespace

const TaskKind& classify() {
  static const TaskKind kind = {
      .summary = "accuracy of the model's own classification head, or of a carried one",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<Classify>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
