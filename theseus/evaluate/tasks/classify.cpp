// The model's own head, or one that was carried to it.

#include <algorithm>
#include <set>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/evaluate/head.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

constexpr const char* kNoHead =
    "this model has no classification head; use --task probe or zero-shot, or --head-from";

std::string labels_text(const data::Examples& examples, const std::vector<int64_t>& order) {
  constexpr size_t kShown = 10;
  std::set<int64_t> labels;
  for (const auto place : order) {
    labels.insert(examples.labels[static_cast<size_t>(place)]);
  }
  std::vector<std::string> words;
  for (const auto label : labels) {
    words.push_back(c10::str(label));
  }
  return joined(words, kShown) + " (numbers are taken as they are; names of classes are counted)";
}

// Of the first example with this label.
std::string name_with(
    int64_t label, const data::Examples& examples, const std::vector<int64_t>& order) {
  const auto found = std::find_if(order.begin(), order.end(), [&](int64_t place) {
    return examples.labels[static_cast<size_t>(place)] == label;
  });
  return found == order.end() ? "" : printable(examples.names[static_cast<size_t>(*found)], 400);
}

class Classify : public Task {
 public:
  void check(
      model::Model& model,
      const data::Examples& examples,
      const std::vector<int64_t>& order,
      const Settings& settings) const override {
    require(!examples.labels.empty(), "these examples have no labels to compare with");
    const auto weight = settings.head ? settings.head->weight : find_head(model).weight;
    require(weight.defined(), kNoHead);
    const auto told = weight.size(0);
    const auto classes = static_cast<int64_t>(examples.classes.size());
    require(
        classes == 0 || told == classes, "the head has ", told, " classes and the data ", classes);
    const auto largest = largest_label(examples, order);
    require(
        largest < told, "label ", largest, " is beyond the head's ", told, " classes, 0 to ",
        told - 1, "; the labels here are ", labels_text(examples, order), "; it is that of ",
        name_with(largest, examples, order));
  }

  void begin(
      model::Model&, model::Reader&, const data::Examples&, const Settings& settings) override {
    head_ = settings.head;
  }

  void add(model::Model& model, const Step& step, const data::Examples& examples) override {
    const auto logits = logits_of(model, step);  // [n, c]
    const auto labels = labels_of(examples, step);
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
    require(found != outputs.end() && found->second.dim() == 2, kNoHead);
    return found->second.to(at::kCPU);
  }

  std::shared_ptr<const Head> head_;
  int64_t right_ = 0, all_ = 0;
};

}  // namespace

const TaskKind& classify() {
  static const TaskKind kind = {
      .summary = "accuracy of the model's own classification head, or of a carried one",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<Classify>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
