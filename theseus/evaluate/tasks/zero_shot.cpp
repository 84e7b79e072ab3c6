// CLIP: an image belongs to the class whose prompts it is most like,
//
//   w_c = norm(mean over templates of norm(text(template with c))),   class = argmax_c image . w_c

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

constexpr size_t kPromptsAtATime = 64;

at::Tensor normalised(const at::Tensor& rows) {
  return rows / rows.norm(2, 1, /*keepdim=*/true);
}

at::Tensor output(const model::Outputs& outputs, const char* projected, const char* normed) {
  auto found = outputs.find(projected);
  found = found == outputs.end() ? outputs.find(normed) : found;
  require(
      found != outputs.end(),
      "zero-shot needs a model of images and text, such as CLIP; this one "
      "gives no ",
      normed);
  return normalised(found->second.to(at::kCPU, at::kFloat));
}

class ZeroShot : public Task {
 public:
  void begin(
      model::Model& model,
      model::Reader& reader,
      const data::Examples& examples,
      const Settings& settings) override {
    const auto& templates = settings.templates.empty() ? examples.templates : settings.templates;
    require(!templates.empty(), "these data bring no prompts; give --template 'a photo of a {c}.'");
    require(!examples.classes.empty(), "zero-shot needs the names of the classes");
    require(!examples.labels.empty(), "these examples have no labels to compare with");
    std::vector<data::Worded> prompts;  // by class, then template
    for (const auto& name : examples.classes) {
      for (const auto& words : templates) {
        prompts.push_back({.first = data::fill_template(words, name)});
      }
    }
    std::vector<at::Tensor> rows;
    for (size_t i = 0; i < prompts.size(); i += kPromptsAtATime) {
      const auto end =
          prompts.begin() + static_cast<int64_t>(std::min(i + kPromptsAtATime, prompts.size()));
      const auto batch = reader.texts({prompts.begin() + static_cast<int64_t>(i), end});
      rows.push_back(output(model.forward(batch), "text_features", "text_embeds"));
    }
    const auto count = static_cast<int64_t>(templates.size());
    const auto features = at::cat(rows);                                          // [c * count, d]
    weights_ = normalised(features.view({-1, count, features.size(1)}).mean(1));  // [c, d]
  }

  void add(model::Model& model, const Step& step, const data::Examples& examples) override {
    const auto images = output(model.forward(step.batch), "image_features", "image_embeds");
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
