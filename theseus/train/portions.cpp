#include "theseus/train/portions.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/identity.h"
#include "theseus/data/part.h"
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

void open_other(
    const FinetuneOptions& options,
    const model::Model& model,
    const std::string& split,
    Portions& portions) {
  const auto& from = split.empty() ? options.validation : options.data;
  const auto& asked = options.validation_split.empty() ? data::kHeldOut : options.validation_split;
  portions.other = with_context("opening --validation", [&] {
    return open(from, split.empty() ? asked : split, options, model);
  });
  const auto& learnt = *portions.examples;
  const auto& other = *portions.other;
  require(
      learnt.classes == other.classes,
      "--validation: these have other classes than --data: ", other.classes.size(), " and ",
      learnt.classes.size(), ", or in another order");
  portions.held_out = {
      .examples = &other,
      .places = evaluate::choose(other, options.validation_limit, options.seed)};
  const auto count = portions.held_out.places.size();
  portions.words = c10::str(
      from, other.split.empty() ? "" : " (" + other.split + ")",
      static_cast<int64_t>(count) < other.size() ? c10::str(", ", count, " examples") : "");
}

void keep_apart(Portions& portions) {
  const auto measured = data::identities_of(*portions.held_out.examples, portions.held_out.places);
  auto& places = portions.training.places;
  portions.left_out = static_cast<int64_t>(std::erase_if(places, [&](int64_t place) {
    return measured.contains(data::identity_of(*portions.examples, place));
  }));
  require(
      !places.empty(),
      "--validation: these are the examples that are learnt from, and none is left");
}

}  // namespace

Portions choose_portions(const FinetuneOptions& options, const model::Model& model) {
  Portions portions;
  portions.examples =
      open(options.data, options.split.empty() ? data::kNotTest : options.split, options, model);
  portions.training = {
      .examples = portions.examples.get(),
      .places = evaluate::choose(*portions.examples, options.limit, options.seed)};
  const auto split = data::find_part(options.validation) ? options.validation
                                                         : data::split_meant(options.validation);
  const bool other_data =
      !options.validation.empty() && options.validation != "none" && split.empty();
  require(
      other_data || options.validation_split.empty(),
      "--validation-split is for --validation DATA: other data than those that are learnt from");
  require(
      other_data || !split.empty() || options.validation_limit == 0,
      "--validation-limit is for --validation with a split or with other data");
  if (options.validation == "none") {
    portions.words = "none";
  } else if (options.validation.empty()) {
    hold_out_some(options.seed, portions);
  } else {
    open_other(options, model, split, portions);
  }
  if (!portions.held_out.places.empty()) {
    keep_apart(portions);
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
