#include "theseus/train/portions.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/sampling.h"
#include "theseus/data/shuffle.h"
#include "theseus/data/splits.h"
#include "theseus/evaluate/evaluate.h"

namespace theseus::train {
namespace {

constexpr size_t kShare = 10, kMost = 2000;  // held out: one of ten, and no more than this

std::unique_ptr<data::Examples> open(
    const std::string& data,
    const std::string& split,
    const FinetuneOptions& options,
    const model::Model& model) {
  return std::make_unique<data::Examples>(evaluate::open_data(
      data, split, model,
      {.wording = options.wording, .second = options.second, .answer = options.answer}));
}

// The last of a shuffled order, so that which these are does not depend on how many are learnt from.
void hold_out_some(uint64_t seed, Portions& portions) {
  auto order = portions.training.places;
  const auto count = std::min(order.size() / kShare, kMost);
  require(
      count > 0, order.size(),
      " examples are too few to hold some out; give --validation DATA, or ", "--validation none");
  data::Random random(seed);
  data::shuffle_front(order, order.size(), random);
  portions.held_out = {.examples = portions.examples.get()};
  portions.held_out.places.assign(order.end() - static_cast<int64_t>(count), order.end());
  order.resize(order.size() - count);
  for (auto* places : {&order, &portions.held_out.places}) {
    std::sort(places->begin(), places->end());
  }
  portions.training.places = order;
  portions.words = c10::str(count, " of the training examples, which are not learnt from");
}

}  // namespace

Portions choose_portions(const FinetuneOptions& options, const model::Model& model) {
  Portions portions;
  portions.examples =
      open(options.data, options.split.empty() ? data::kNotTest : options.split, options, model);
  portions.training = {
      .examples = portions.examples.get(),
      .places = evaluate::choose(*portions.examples, options.limit, options.seed)};
  const auto split = data::split_meant(options.validation);
  if (options.validation == "none") {
    portions.words = "none";
  } else if (options.validation.empty()) {
    hold_out_some(options.seed, portions);
  } else {
    const auto& from = split.empty() ? options.validation : options.data;
    portions.other = open(from, split.empty() ? data::kNotTest : split, options, model);
    const auto& learnt = *portions.examples;
    const auto& other = *portions.other;
    require(
        learnt.names != other.names, "--validation: these are the examples that are learnt from");
    require(
        learnt.classes == other.classes,
        "--validation: these have other classes than --data: ", other.classes.size(), " and ",
        learnt.classes.size(), ", or in another order");
    portions.held_out = {.examples = &other, .places = data::every(other)};
    portions.words = from + (other.split.empty() ? "" : " (" + other.split + ")");
  }
  return portions;
}

nlohmann::ordered_json describe(const Portion& portion, const std::string& data) {
  return {
      {"data", data},
      {"source", portion.examples->source},
      {"split", portion.examples->split},
      {"examples", portion.places.size()},
      {"hash", data::hash_of(*portion.examples, portion.places)}};
}

}  // namespace theseus::train
