#include "theseus/evaluate/spoken.h"

#include <cmath>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/base/error.h"

namespace theseus::evaluate {
namespace {

constexpr int64_t kDirections = 256;
constexpr uint64_t kSeed = 1;

// [v, k], of mean square length 1
at::Tensor directions(int64_t vocabulary) {
  auto generator = at::detail::createCPUGenerator(kSeed);
  return at::randn({vocabulary, kDirections}, generator, at::kFloat) /
         std::sqrt(static_cast<double>(kDirections));
}

at::Tensor asked_of(const Step& step) {
  return step.answers.defined() ? step.answers >= 0 : step.batch.at("attention_mask") != 0;
}

}  // namespace

Spoken spoken(model::Model& model, const std::vector<Step>& steps) {
  std::vector<at::Tensor> rows, texts;
  at::Tensor projection;
  int64_t before = 0;
  for (const auto& step : steps) {
    const auto logits = model.forward(step.batch).at("logits").to(at::kCPU, at::kFloat);
    if (!projection.defined()) {
      projection = directions(logits.size(-1));
    }
    const auto asked = asked_of(step);  // [n, t]
    rows.push_back(
        at::mm(logits.index({asked}).log_softmax(1), projection).to(at::kDouble));  // [places, k]
    texts.push_back(asked.nonzero().select(1, 0) + before);
    before += asked.size(0);
  }
  return {.rows = at::cat(rows), .text = at::cat(texts)};
}

void require_same_texts(const std::vector<Step>& left, const std::vector<Step>& right) {
  bool same = left.size() == right.size();
  for (size_t i = 0; same && i < left.size(); ++i) {
    same = at::equal(left[i].batch.at("input_ids"), right[i].batch.at("input_ids"));
  }
  require(
      same,
      "--label-free compares what two language models say of the same tokens, and these two read "
      "the texts as other tokens; choose a strength by --task perplexity");
}

}  // namespace theseus::evaluate
