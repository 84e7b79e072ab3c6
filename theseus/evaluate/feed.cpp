#include "theseus/evaluate/feed.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/data/loader.h"
#include "theseus/data/wording.h"
#include "theseus/gradient/labelled.h"

namespace theseus::evaluate {
namespace {

std::vector<std::string> feed_images(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    const data::Preprocessing& how,
    const FeedOptions& options,
    const std::function<void(Step&&)>& take) {
  data::ImageLoader loader(examples, order, {how}, options.batch_size, options.threads);
  while (auto batch = loader.next()) {
    take({.batch = {{"pixel_values", batch->views.front()}}, .examples = batch->examples});
  }
  return loader.skipped();
}

// A step's examples are rows here: no label belongs to them.
void feed_packed(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    model::Reader& reader,
    const FeedOptions& options,
    const std::function<void(Step&&)>& take) {
  auto plain = examples;
  plain.wording.answer = options.answers ? examples.wording.answer : "";
  const auto whole = gradient::read_packed(plain, order, reader, options.pack);
  const auto rows = whole.size();
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    const auto count = std::min(options.batch_size, rows - first);
    auto part = whole.part(first, count);
    Step step{.batch = std::move(part.batch), .answers = part.wanted};
    step.examples.resize(static_cast<size_t>(count));
    std::iota(step.examples.begin(), step.examples.end(), first);
    take(std::move(step));
  }
}

}  // namespace

std::vector<std::string> feed(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    model::Reader& reader,
    const FeedOptions& options,
    const std::function<void(Step&&)>& take) {
  if (examples.image) {
    return feed_images(examples, order, reader.images(), options, take);
  }
  if (options.pack > 0) {
    feed_packed(examples, order, reader, options, take);
    return {};
  }
  for (size_t first = 0; first < order.size(); first += static_cast<size_t>(options.batch_size)) {
    const auto last = std::min(order.size(), first + static_cast<size_t>(options.batch_size));
    Step step;
    std::vector<data::Worded> texts;
    for (size_t i = first; i < last; ++i) {
      texts.push_back(data::worded(examples, examples.wording, order[i]));
      step.examples.push_back(order[i]);
      if (!texts.back().answer.empty()) {
        step.wanted.push_back(texts.back().answer);
      }
    }
    require(
        step.wanted.empty() || step.wanted.size() == texts.size(),
        texts.size() - step.wanted.size(), " of ", texts.size(),
        " texts have no answer; all of them need one, or none");
    if (options.answers && !examples.wording.answer.empty()) {
      auto read = gradient::read_with_answers(examples, step.examples, reader);
      step.batch = std::move(read.batch);
      step.answers = read.wanted;
    } else {
      step.batch = reader.texts(texts);
      step.answers = reader.answers();
    }
    take(std::move(step));
  }
  return {};
}

}  // namespace theseus::evaluate
