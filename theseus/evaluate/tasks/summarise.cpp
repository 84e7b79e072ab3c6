// ROUGE-L of what the model writes greedily.

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/rouge.h"
#include "theseus/evaluate/task.h"
#include "theseus/gradient/labelled.h"
#include "theseus/model/generate.h"

namespace theseus::evaluate::tasks {
namespace {

// A causal model goes on from the last column, so padding has to stand before the text.
void pad_in_front(model::Batch& batch) {
  auto& ids = batch.at("input_ids");
  auto& mask = batch.at("attention_mask");
  const auto lengths = mask.sum(1);  // [n]
  std::vector<at::Tensor> moved_ids, moved_mask;
  for (int64_t i = 0; i < ids.size(0); ++i) {
    const auto shift = ids.size(1) - lengths[i].item<int64_t>();
    moved_ids.push_back(ids[i].roll({shift}));
    moved_mask.push_back(mask[i].roll({shift}));
  }
  ids = at::stack(moved_ids);
  mask = at::stack(moved_mask);
}

constexpr int64_t kNewTokens = 64;  // of a summary, where nobody said

class Summarise : public Task {
 public:
  void check(
      model::Model& model,
      const data::Examples&,
      const std::vector<int64_t>&,
      const Settings&) const override {
    model::require_can_generate(model);
  }

  void begin(
      model::Model& model,
      model::Reader& reader,
      const data::Examples&,
      const Settings& settings) override {
    new_tokens_ = settings.new_tokens.value_or(kNewTokens);
    if (gradient::is_causal(model)) {
      reader.leave_room(new_tokens_);
    }
    reader_ = &reader;
  }

  void add(model::Model& model, const Step& step, const data::Examples&) override {
    require(!step.wanted.empty(), "these examples bring no answers to compare with; say --wording");
    auto batch = step.batch;
    const bool own = batch.erase("decoder_input_ids") > 0;  // an encoder-decoder writes its own
    if (!own) {
      pad_in_front(batch);
    }
    const auto written = model::greedy(model, batch, {.new_tokens = new_tokens_});
    const auto first = own ? 1 : batch.at("input_ids").size(1);
    const auto& ends = model.architecture().generation.end;
    for (int64_t i = 0; i < written.size(0); ++i) {
      std::vector<int64_t> ids;
      for (int64_t t = first; t < written.size(1); ++t) {
        const auto id = written[i][t].item<int64_t>();
        if (std::find(ends.begin(), ends.end(), id) != ends.end()) {
          break;
        }
        ids.push_back(id);
      }
      const auto value =
          rouge_l(reader_->tokenizer().decode(ids), step.wanted[static_cast<size_t>(i)]);
      sum_ += value;
      squares_ += value * value;
      ++count_;
    }
  }

  Score score() const override { return mean_score("rouge_l", sum_, squares_, count_); }

 private:
  model::Reader* reader_ = nullptr;
  int64_t new_tokens_ = 0, count_ = 0;
  double sum_ = 0, squares_ = 0;
};

}  // namespace

const TaskKind& summarise() {
  static const TaskKind kind = {
      .summary = "ROUGE-L of what the model writes, token by most likely token",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<Summarise>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
