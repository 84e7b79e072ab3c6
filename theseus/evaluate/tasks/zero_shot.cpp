// CLIP: an image belongs to the class whose prompts it is most like,
//
//   w_c = norm(mean over templates of norm(text(template with c))),   class = argmax_c image . w_c

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/features.h"
#include "theseus/evaluate/task.h"
#include "theseus/gradient/loss.h"

namespace theseus::evaluate::tasks {
namespace {

class ZeroShot : public Task {
 public:
  void check(
      model::Model&,
      const data::Examples& examples,
      const std::vector<int64_t>&,
      const Settings&) const override {
    require(!examples.labels.empty(), "these examples have no labels to compare with");
  }

  void begin(
      model::Model& model,
      model::Reader& reader,
      const data::Examples& examples,
      const Settings& settings) override {
    const auto& templates = settings.templates.empty() ? examples.templates : settings.templates;
    weights_ = gradient::class_features(model, reader, examples.classes, templates);
  }

  void add(model::Model& model, const Step& step, const data::Examples& examples) override {
    const auto images = features_of(model.forward(step.batch), step.batch);  // [n, d]
    right_ +=
        (images.matmul(weights_.t()).argmax(1) == labels_of(examples, step)).sum().item<int64_t>();
    all_ += images.size(0);
  }

  Score score() const override { return accuracy(right_, all_); }

  std::unique_ptr<Task> again() const override {
    auto task = std::make_unique<ZeroShot>();
    task->weights_ = weights_;
    return task;
  }

 private:
  at::Tensor weights_;  // [c, d]
  int64_t right_ = 0, all_ = 0;
};

}  // namespace

const TaskKind& zero_shot() {
  static const TaskKind kind = {
      .summary = "accuracy of CLIP by prompts that name the classes",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<ZeroShot>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
