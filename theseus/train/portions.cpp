#include "theseus/train/portions.h"

#include <algorithm>

#include "theseus/base/error.h"
#include "theseus/data/class_match.h"
#include "theseus/data/identity.h"
#include "theseus/data/part.h"
#include "theseus/data/sampling.h"
#include "theseus/data/shuffle.h"
#include "theseus/data/splits.h"
#include "theseus/evaluate/evaluate.h"
#include "theseus/train/schedule.h"

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

int64_t most_of(const FinetuneOptions& options) {
  return most_held_out(options.steps, options.batch_size);
}

void add_note(const std::string& note, Portions& portions) {
  if (!note.empty()) {
    portions.notes.push_back(note);
  }
}

void add_fewer(
    const std::string& option, int64_t limit, const data::Examples& examples, Portions& portions) {
  for (const auto& note : evaluate::note_on_fewer(option, limit, examples.size())) {
    portions.notes.push_back(note);
  }
}

// The last of a shuffled order, so that which these are does not depend on how many are learnt from.
void hold_out_some(const FinetuneOptions& options, Portions& portions) {
  auto order = portions.training.places;
  const auto affordable = options.pack > 0 ? kMost : static_cast<size_t>(most_of(options));
  const auto count = std::min({order.size() / kShare, kMost, affordable});
  require(
      count > 0, order.size(),
      " examples are too few to hold some out; give --validation DATA, or ", "--validation none");
  data::Random random(options.seed);
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
  auto& other = *portions.other;
  if (learnt.classes.empty() && !other.classes.empty()) {
    add_note(
        "--validation names its classes and --data does not: labels of both were taken by their "
        "numbers",
        portions);
  } else if (!learnt.classes.empty()) {
    add_note(
        with_context(
            "--validation: its classes beside those of --data",
            [&] {
              return data::number_as(
                  {.whose = "--data", .count = std::ssize(learnt.classes), .names = learnt.classes},
                  other);
            }),
        portions);
  }
  const bool said = options.validation_limit > 0;
  const auto limit = said ? options.validation_limit : options.pack > 0 ? 0 : most_of(options);
  portions.held_out = {.examples = &other, .places = evaluate::choose(other, limit, options.seed)};
  const auto count = portions.held_out.places.size();
  if (said) {
    add_fewer("--validation-limit", limit, other, portions);
  } else if (static_cast<int64_t>(count) < other.size()) {
    portions.notes.push_back(c10::str(
        count, " of ", other.size(),
        " examples are measured on, drawn by the seed, since the training is short; "
        "--validation-limit says how many"));
  }
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
  add_fewer("--limit", options.limit, *portions.examples, portions);
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
    hold_out_some(options, portions);
  } else {
    open_other(options, model, split, portions);
  }
  if (!portions.held_out.places.empty()) {
    keep_apart(portions);
  }
  return portions;
}

void number_classes(const Head& head, Portions& portions) {
  if (head.kind != Head::Kind::kKeep || head.told == 0) {
    return;
  }
  const data::Classes classes{
      .whose = "the model's head",
      .count = head.told,
      .names = head.classes,
      .otherwise =
          ". --head new trains a head onto these; where only the names differ, change them in "
          "id2label of the model's config.json"};
  add_note(data::number_as(classes, *portions.examples), portions);
  if (portions.other) {
    data::number_as(classes, *portions.other);
  }
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
