// exp of the mean of -log p(next token) over all tokens that are no padding: of the answer where the
// wording has one, else of the text.

#include <cmath>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/task.h"

namespace theseus::evaluate::tasks {
namespace {

class Perplexity : public Task {
 public:
  void check(
      model::Model& model,
      const data::Examples&,
      const std::vector<int64_t>&,
      const Settings&) const override {
    require(model.architecture().generation.possible, "perplexity needs a language model");
  }

  void begin(model::Model&, model::Reader&, const data::Examples&, const Settings&) override {}

  void add(model::Model& model, const Step& step, const data::Examples&) override {
    const auto& batch = step.batch;
    const auto& answers = step.answers;
    auto logits = model.forward(batch).at("logits").to(at::kCPU, at::kFloat);  // [n, t, v]
    at::Tensor wanted, scored;                                                 // [n, t]
    if (answers.defined()) {
      scored = answers >= 0;
      wanted = answers.clamp_min(0);
    } else {
      const auto& ids = batch.at("input_ids");
      const auto length = ids.size(1) - 1;
      logits = logits.narrow(1, 0, length);
      wanted = ids.narrow(1, 1, length);
      scored = batch.at("attention_mask").narrow(1, 1, length) != 0;
    }
    const auto loss =
        -logits.log_softmax(2).gather(2, wanted.unsqueeze(2)).squeeze(2).to(at::kDouble);  // [n, t]
    for (int64_t i = 0; i < loss.size(0); ++i) {
      const auto own = loss[i].masked_select(scored[i]);
      if (own.numel() == 0) {
        continue;  // one token: nothing to predict
      }
      const auto sum = own.sum().item<double>();
      const auto count = static_cast<double>(own.numel());
      sum_ += sum;
      tokens_ += count;
      texts_ += 1;
      squares_[0] += sum * sum;
      squares_[1] += sum * count;
      squares_[2] += count * count;
    }
  }

  // Texts are drawn, not tokens: the interval of a ratio of sums.
  Score score() const override {
    require(tokens_ > 0, "there is no token to predict");
    const auto mean = sum_ / tokens_;
    const auto spread = squares_[0] - 2 * mean * squares_[1] + mean * mean * squares_[2];
    const auto n = static_cast<double>(texts_);
    const auto error = texts_ > 1 ? std::sqrt(std::max(spread, 0.0) * n / (n - 1)) / tokens_ : 0;
    return {
        .metric = "perplexity",
        .value = std::exp(mean),
        .low = std::exp(mean - 1.96 * error),
        .high = std::exp(mean + 1.96 * error),
        .count = texts_,
        .higher_is_better = false};
  }

 private:
  double sum_ = 0, tokens_ = 0, squares_[3] = {0, 0, 0};
  int64_t texts_ = 0;
};

}  // namespace

const TaskKind& perplexity() {
  static const TaskKind kind = {
      .summary = "perplexity of texts, or of answers given their texts",
      .make = []() -> std::unique_ptr<Task> { return std::make_unique<Perplexity>(); }};
  return kind;
}

}  // namespace theseus::evaluate::tasks
