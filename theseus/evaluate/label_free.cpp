#include "theseus/evaluate/label_free.h"

#include <algorithm>
#include <cmath>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/data/identity.h"
#include "theseus/data/sampling.h"
#include "theseus/evaluate/features.h"
#include "theseus/evaluate/spoken.h"
#include "theseus/gradient/labelled.h"
#include "theseus/transport/alignment.h"
#include "theseus/transport/source_update.h"

namespace theseus::evaluate {
namespace {

using nlohmann::ordered_json;

// Examples as one model reads them.
struct Inputs {
  std::string split;
  data::Identities places;
  std::vector<Step> steps;
  std::vector<std::string> notes;
};

Inputs read(const model::Model& model, const EvaluateOptions& options) {
  const auto examples = open_data(options.data, options.split, model, options);
  model::Reader reader(model, options.longest);
  std::vector<std::string> skipped;
  const auto order = choose(examples, options.limit, options.seed);
  Inputs inputs{.split = examples.split, .places = data::places_of(examples, order)};
  inputs.steps = read_steps(
      examples, order, reader,
      feed_for(model, gradient::is_causal(model) ? "perplexity" : "", options), skipped);
  inputs.notes = notes_on_inputs(reader, skipped);
  for (const auto& note : note_on_fewer("--limit", options.limit, examples.size())) {
    inputs.notes.push_back(note);
  }
  return inputs;
}

at::Tensor features(model::Model& model, const std::vector<Step>& steps) {
  if (gradient::is_causal(model)) {
    return spoken(model, steps).rows;
  }
  std::vector<at::Tensor> rows;
  for (const auto& step : steps) {
    rows.push_back(features_of(model.forward(step.batch), step.batch).to(at::kDouble));
  }
  return at::cat(rows);  // [n, d]
}

at::Tensor centred(const at::Tensor& rows) {
  return rows - rows.mean(0, /*keepdim=*/true);
}

double spread(const at::Tensor& rows) {
  return centred(rows).norm().item<double>();
}

struct SourceFeatures {
  at::Tensor base, change;  // [n, ds]
  std::vector<Step> steps;
};

SourceFeatures source_features(
    const SourceChange& from,
    const std::string& base,
    const model::Placement& placement,
    const EvaluateOptions& options) {
  auto source = with_context("opening the source (give --source if it has moved)", [&] {
    return model::Model::open(base, {.placement = placement});
  });
  const auto update = transport::whole_deltas(
      transport::SourceUpdate::open(from.tuned, source), source.architecture());
  SourceFeatures result{.steps = read(source, options).steps};
  result.base = features(source, result.steps);
  Strengthened tuned(source, update);
  tuned.set(1);
  result.change = features(source, result.steps) - result.base;
  return result;
}

// `text`: which of several rows are of one example; undefined: each is one.
Measured agreement(
    const at::Tensor& change, const at::Tensor& wanted, const at::Tensor& text = {}) {
  const auto summed = [&](const at::Tensor& rows) {
    const auto each = rows.square().sum(1);  // [n]
    return text.defined() ? at::zeros({text.max().item<int64_t>() + 1}, each.options())
                                .index_add(0, text, each)
                          : each;
  };
  const auto error = summed(change - wanted), size = summed(wanted);
  const auto all = size.sum().item<double>();
  const auto lost = error.sum().item<double>() / all;
  // Examples are drawn, so this is a ratio of sums over them.
  const auto n = static_cast<double>(error.size(0));
  const auto scatter = (error - lost * size).square().sum().item<double>() * n / (n - 1);
  const auto half = kNormal95 * std::sqrt(scatter) / all;
  const auto length = change.norm().item<double>();
  const auto along = change.mul(wanted).sum().item<double>();
  Measured result{
      .score = {
          .metric = "agreement",
          .value = 1 - lost,
          .low = 1 - lost - half,
          .high = 1 - lost + half,
          .count = error.size(0)}};
  result.more["cosine"] = length > 0 ? along / (length * std::sqrt(all)) : 0.0;
  const auto own = centred(wanted).square().sum().item<double>();
  const auto missed = (centred(change) - centred(wanted)).square().sum().item<double>();
  result.more["centred"] = own > 0 ? 1 - missed / own : 0.0;
  return result;
}

// A shift that all examples share tells none of them from another.
std::string note_on_shift(const ordered_json& best) {
  const auto value = best.at("value").get<double>(), own = best.at("centred").get<double>();
  if (value <= 0) {
    return "no strength brings the target's features nearer to the wanted change: doubt the "
           "transport";
  }
  return own > value / 2 ? ""
                         : fmt::format(
                               "the agreement of {:.2f} is mostly a shift that all examples share; "
                               "what tells them "
                               "apart agrees to {:.2f}: doubt this strength",
                               value, own);
}

// How many of the examples are of those that the maps were drawn from, however both were named: maps that were fitted to
// these very examples flatter themselves.
int64_t count_known(const nlohmann::json& about, const data::Identities& places) {
  const auto found = about.find("calibration");
  if (found == about.end() || !found->is_object() || !found->contains("data")) {
    return 0;
  }
  try {
    const auto all = data::open_examples(found->at("data"), found->value("split", ""));
    const auto known = data::places_of(all, data::drawn_again(*found, all));
    return std::count_if(
        places.begin(), places.end(), [&](const auto& place) { return known.contains(place); });
  } catch (const InputError&) {
    return 0;  // they are no longer there
  }
}

// The change that the target's features should show.
struct Goal {
  at::Tensor wanted;  // [n, dt]
  at::Tensor text;    // see agreement()
  std::string space;
  double unit = 1;
};

Goal goal_of(
    model::Model& model,
    const SourceChange& from,
    const transport::Alignment& alignment,
    const std::vector<Step>& steps,
    const EvaluateOptions& options) {
  const bool speaks = gradient::is_causal(model);
  Goal goal{.space = speaks ? "logits" : feature_space(model.architecture())};
  const auto map = speaks ? at::Tensor() : alignment.find_map(goal.space);
  require(
      speaks || map.defined(), "the alignment ", from.alignment, " has no map of ", goal.space,
      ", in which changes are compared; 'theseus align' makes one from examples that reach it");
  const auto source = source_features(
      from,
      from.source.empty() ? alignment.about().at("source").at("path").get<std::string>()
                          : from.source,
      model.weights().placement(), options);
  if (speaks) {
    require_same_texts(source.steps, steps);
    auto base = spoken(model, steps);
    require(base.text.max().item<int64_t>() > 0, "one text says nothing about a spread; give more");
    goal.text = base.text;
    goal.wanted = source.change;  // of the same tokens: no map, and no other unit
  } else {
    const auto base = features(model, steps);  // [n, dt]
    require(base.size(0) > 1, "one example says nothing about a spread; give more");
    require(
        source.base.size(0) == base.size(0) && source.base.size(1) == map.size(0) &&
            base.size(1) == map.size(1),
        "the features are ", source.base.sizes(), " and ", base.sizes(), ", and the map ",
        map.sizes(), ": the alignment was made for other models");
    const auto matrix = map.to(at::kDouble);
    goal.unit = spread(base) / spread(source.base.matmul(matrix));
    goal.wanted = source.change.matmul(matrix) * goal.unit;
  }
  require(
      std::isfinite(goal.unit) && goal.wanted.norm().item<double>() > 0,
      "on these examples the tuned source gives the features of its base: there is no change to "
      "agree with");
  return goal;
}

}  // namespace

ordered_json sweep_without_labels(
    model::Model& model,
    const Update& update,
    const SourceChange& from,
    const EvaluateOptions& options,
    const Strengths& strengths,
    const Watch& watch) {
  const auto alignment = transport::Alignment::open(from.alignment);
  auto inputs = read(model, options);
  const auto goal = goal_of(model, from, alignment, inputs.steps, options);
  const auto base = features(model, inputs.steps);  // [n, dt]
  Strengthened strengthened(model, update);
  const auto found = search(
      strengths,
      [&](double alpha) {
        strengthened.set(alpha);
        return agreement(features(model, inputs.steps) - base, goal.wanted, goal.text);
      },
      watch);
  ordered_json record = {
      {"kind", "sweep"},
      {"model", model.location().weights.string()},
      {"data", options.data},
      {"split", inputs.split},
      {"task", "label-free"},
      {"metric", "agreement"},
      {"base", describe(agreement(at::zeros_like(base), goal.wanted, goal.text).score)},
      {"curve", found.curve},
      {"best", found.best},
      {"label_free", {{"alpha", found.best.at("alpha")}}},
      {"space", goal.space},
      {"unit", goal.unit}};
  if (const auto note = note_on_shift(found.best); !note.empty()) {
    inputs.notes.push_back(note);
  }
  if (found.at_the_end) {
    inputs.notes.emplace_back(kAtTheEnd);
  }
  if (const auto known = count_known(alignment.about(), inputs.places); known > 0) {
    inputs.notes.push_back(c10::str(
        known, " of ", inputs.places.size(),
        " examples are of those that the maps were made from: others would say more"));
  }
  record["notes"] = inputs.notes;
  return record;
}

}  // namespace theseus::evaluate
