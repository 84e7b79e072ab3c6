#include "theseus/evaluate/feed.h"

#include <algorithm>
#include <numeric>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/data/loader.h"
#include "theseus/data/wording.h"

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
    const model::Reader& reader,
    const FeedOptions& options,
    const std::function<void(Step&&)>& take) {
  std::vector<data::Worded> texts;
  for (const auto i : order) {
    texts.push_back(data::worded(examples, examples.wording, i));
  }
  const auto whole = reader.packed(texts, options.pack);
  const auto rows = whole.at("input_ids").size(0);
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    const auto count = std::min(options.batch_size, rows - first);
    Step step;
    for (const auto& [name, tensor] : whole) {
      step.batch[name] = tensor.narrow(0, first, count);
    }
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
    step.batch = reader.texts(texts);
    step.answers = reader.answers();
    take(std::move(step));
  }
  return {};
}

}  // namespace theseus::evaluate
