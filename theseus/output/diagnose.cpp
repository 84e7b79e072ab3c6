#include "theseus/output/diagnose.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/temporary_directory.h"
#include "theseus/base/units.h"
#include "theseus/data/class_match.h"
#include "theseus/gradient/loss.h"
#include "theseus/model/class_names.h"
#include "theseus/output/agreement.h"
#include "theseus/output/assembly.h"
#include "theseus/output/base_distance.h"
#include "theseus/output/carried_files.h"
#include "theseus/output/held_out.h"
#include "theseus/output/job_notes.h"
#include "theseus/output/method_words.h"
#include "theseus/output/named_base.h"
#include "theseus/output/opened.h"
#include "theseus/output/plan_of.h"
#include "theseus/output/record.h"
#include "theseus/output/verdict.h"
#include "theseus/transport/carry.h"
#include "theseus/transport/kinship.h"
#include "theseus/transport/schedule.h"

namespace theseus::output {
namespace {

using nlohmann::ordered_json;
using transport::Disposition;

// How much of the update lies where.
struct Energy {
  double inside = 0, all = 0;

  void add(
      const model::Parameter& parameter,
      const at::Tensor& delta,
      const std::string& space,
      const at::Tensor& basis) {
    for (size_t axis = 0; axis < parameter.axes.size(); ++axis) {
      if (model::role_of(parameter.axes[axis]) != model::role_of(space) ||
          parameter.shape[axis] != basis.size(0)) {
        continue;
      }
      const auto rows = delta.to(basis.device(), at::kDouble)
                            .movedim(static_cast<int64_t>(axis), 0)
                            .reshape({parameter.shape[axis], -1});
      all += rows.square().sum().item<double>();
      inside += at::mm(basis.t(), rows).square().sum().item<double>();
    }
  }
};

// The blocks whose update goes through the maps of a stage.
std::set<int64_t> source_blocks(const stats::Route& route, int64_t stage) {
  if (stage == 0 || stage > static_cast<int64_t>(route.pairs.size())) {
    return {model::kOuter};
  }
  const auto& pair = route.pairs[static_cast<size_t>(stage - 1)];
  std::set<int64_t> blocks;
  for (const auto& part : route.source[static_cast<size_t>(pair.source)].parts) {
    blocks.insert(part.first);
  }
  return blocks;
}

// |P delta|^2 / |delta|^2 over everything that is carried through the map of `space`.
double energy_share(
    const Opened& opened,
    const stats::Route& route,
    const std::vector<Disposition>& plan,
    int64_t stage,
    const std::string& space,
    const at::Tensor& basis) {
  const auto blocks = source_blocks(route, stage);
  Energy energy;
  for (const auto& row : plan) {
    if (!row.carried || std::find(row.maps.begin(), row.maps.end(), space) == row.maps.end()) {
      continue;
    }
    for (const auto* part : transport::sources_of(row, opened.source.architecture(), route)) {
      if (!blocks.contains(part->block)) {
        continue;
      }
      if (const auto delta = opened.update->find_delta(*part); delta.defined()) {
        energy.add(*part, delta, space, basis);
      }
    }
  }
  return energy.all > 0 ? energy.inside / energy.all : 1;
}

// One row for every space, as its stage is aligned and then measured on what was held out. What the maps carry goes
// to `carried`.
ordered_json measure(
    const JobOptions& options,
    Opened& opened,
    transport::Aligner& aligner,
    const stats::Calibration& held_out,
    CarriedFiles& carried,
    const transport::Watch& watch) {
  const auto plan = plan_of(options, opened, aligner.route(), aligner.towers());
  require_something(opened, plan);
  const auto& route = aligner.route();
  const auto needed = transport::spaces_of(plan);
  HeldOut measured(opened, held_out, route, options.align, needed);
  transport::Solver solver(
      opened.source, opened.target, route, maps::method("procrustes"), options.align.maps);
  auto rows = ordered_json::array();
  const auto describe = [&](int64_t stage, const std::string& space, const maps::Map& map,
                            const stats::Moments& moments, const Likeness& like) {
    const auto problem = solver.problem(space, stage, moments);
    const auto width = std::min(problem.source_width, problem.target_width);
    ordered_json row = {
        {"space", space},
        {"stage", stage},
        {"before", like.before},
        {"after", like.after},
        {"centred", like.centred},
        {"residual", like.residual},
        {"rank", map.rank},
        {"of", width},
        {"possible", std::min(width, problem.most)}};
    if (std::isfinite(map.condition)) {
      row["condition"] = map.condition;
    }
    const auto basis =
        map.rank < problem.source_width ? determined(problem, map.rank) : at::Tensor();
    if (map.rank >= problem.source_width) {
      row["energy"] = 1.0;
    } else if (basis.defined()) {
      row["energy"] = energy_share(opened, route, plan, stage, space, basis);
    }
    rows.push_back(std::move(row));
  };
  const transport::Carrier carrier(
      *opened.update, opened.source.architecture(), route, plan,
      maps::method(options.align.method).carries, options.align.sampling.seed);
  std::map<std::string, transport::Carried> group;
  const transport::Sink sink{
      .stage =
          [&](int64_t stage, const transport::MapSet& maps, const stats::Moments& moments) {
            carrier.carry(stage, maps, group);
            solver.remember_outer(moments);
            for (const auto& [space, like] : measured.measure(stage, maps)) {
              describe(stage, space, maps.at(space), moments, like);
            }
          },
      .group =
          [&](int64_t first, int64_t last) {
            return [&carried, first, last, carried_now = std::exchange(group, {})] {
              carried.write(first, last, carried_now, ordered_json::array());
            };
          },
      .runs_models = true};
  constexpr double kNever = 1e18;
  aligner.run(needed, carried.directory(), sink, watch, kNever);
  return rows;
}

// Inputs that are all the same show one point of each space, and maps of it are maps of nothing.
void require_different(const stats::Calibration& inputs) {
  if (inputs.sequences() < 2) {
    return;  // which is refused for another reason
  }
  model::Batch first;
  for (int64_t batch = 0; batch < inputs.batches(); ++batch) {
    for (const auto& [name, tensor] : inputs.source(batch)) {
      if (name != "pixel_values" && name != "input_ids" && name != "text") {
        continue;
      }
      const auto& one = first.try_emplace(name, tensor.select(0, 0).clone()).first->second;
      if (one.size(-1) != tensor.size(-1) || !at::equal(tensor, one.expand_as(tensor))) {
        return;
      }
    }
  }
  throw InputError(c10::str(
      "all ", inputs.sequences(),
      " sequences of the examples are the same: they say nothing of "
      "how the two models tell inputs apart; give examples of the task"));
}

std::vector<std::string> classes_of(const model::Model& model, int64_t count) {
  auto names = model::class_names(model.location().config, count);
  for (auto i = std::ssize(names); i < count; ++i) {
    names.push_back(c10::str("LABEL_", i));
  }
  return names;
}

// The source's class that each class of the target is, by their names; undefined where not both have a head. Throws
// InputError where these are other classes.
at::Tensor pair_classes(
    const JobOptions& options, Opened& opened, std::vector<std::string>& notes) {
  const auto count = gradient::head_classes(opened.target);
  if (count == 0 || gradient::head_classes(opened.source) != count) {
    return {};
  }
  auto names = model::class_names(options.tuned / "config.json", count);
  names = names.empty() ? classes_of(opened.source, count) : names;
  std::string note;
  const auto places = data::match_classes(
      {.whose = "the tuned source's head",
       .theirs = "the target's head",
       .count = count,
       .names = names},
      classes_of(opened.target, count), note);
  if (!note.empty()) {
    notes.push_back(note);
  }
  return at::tensor(places, at::kLong);
}

// None where the outputs cannot be compared; `notes` say so when it is for want of memory.
std::optional<Agreement> agreement_of(
    const JobOptions& options,
    Opened& opened,
    const stats::Calibration& held_out,
    CarriedFiles& carried,
    std::vector<std::string>& notes) {
  int64_t bytes = 0;
  for (const auto* model : {&opened.source, &opened.target}) {
    for (const auto& info : model->checkpoint().tensors()) {
      bytes += 2 * static_cast<int64_t>(sizeof(float)) * c10::multiply_integers(info.shape);
    }
  }
  if (bytes > transport::available_memory(opened.source.weights().placement().device)) {
    notes.push_back(c10::str(
        "the two models were not run with the update, which would take ", bytes_text(bytes),
        " of memory: the verdict rests on activations alone"));
    return std::nullopt;
  }
  at::Tensor as_source;  // [c]
  try {
    as_source = pair_classes(options, opened, notes);
  } catch (const InputError& error) {
    notes.push_back(c10::str(
        "what the two models say was not compared, and the verdict rests on activations alone: ",
        error.what()));
    return std::nullopt;
  }
  carried.open(carried.end());
  const Assembly assembly(opened.target.architecture(), carried);
  const bool asked = options.words.contains("alpha");
  return find_agreement(
      opened, held_out, [&](const std::string& tensor) { return assembly.delta(tensor); },
      asked ? std::vector{options.alpha} : std::vector{1.0, 2.0, 3.0}, as_source);
}

ordered_json describe_distance(const BaseDistance& distance) {
  ordered_json result = {
      {"compared", distance.compared}, {"of", distance.of}, {"same_shapes", distance.same_shapes}};
  if (distance.compared > 0) {
    result["relative"] = distance.relative;
    result["equal_bytes"] = distance.equal_bytes;
  }
  return result;
}

}  // namespace

ordered_json diagnose_job(const JobOptions& options, const transport::Watch& watch) {
  require(
      options.alignment.empty() && !options.calibration.empty(),
      "a diagnosis makes maps from one part of the examples and measures them on the other: it "
      "needs --examples, and no --alignment");
  require(
      !options.tuned.empty(), "a diagnosis needs the tuned model: which update is to be carried");
  auto opened = open_all(options, watch);
  require_different(*opened.calibration);
  const auto split = opened.calibration->split();
  transport::Aligner aligner(opened.source, opened.target, &split.first, options.align, watch);
  const auto plan = plan_of(options, opened, aligner.route(), aligner.towers());
  const TemporaryDirectory work("theseus-diagnose");
  CarriedFiles carried(work.path());
  ordered_json record = {{"kind", "diagnose"}};
  const auto spaces = measure(options, opened, aligner, split.second, carried, watch);
  require(!spaces.empty(), "the held-out inputs reach no space that the update needs");
  const auto distance = distance_of_bases(opened, plan);
  auto notes = opened.update->notes();
  if (!options.source_note.empty()) {
    notes.insert(notes.begin(), options.source_note);
  }
  if (const auto other = note_on_another_base(options.tuned, opened.source); !other.empty()) {
    notes.insert(notes.begin(), other);
  }
  const auto agreement = agreement_of(options, opened, split.second, carried, notes);
  const auto kinship = transport::notes_on_kinship(
      transport::kinship_of(*opened.update, opened.source.architecture()));
  notes.insert(notes.end(), kinship.begin(), kinship.end());
  const auto verdict = judge(spaces, distance, agreement, kinship.empty());
  record["verdict"] = verdict.word;
  record["reasons"] = verdict.reasons;
  record["spaces"] = spaces;
  record["distance"] = describe_distance(distance);
  record["aligned"] = split.first.sequences();
  record["held_out"] = split.second.sequences();
  record["method"] = method_words(options.align);
  if (agreement) {
    record["agreement"] = {
        {"before", agreement->before},
        {"after", agreement->after},
        {"gain", agreement->gain()},
        {"rows", agreement->rows},
        {"alpha", agreement->alpha}};
  }
  for (const auto& more :
       {notes_on_examples(opened), notes_on_update(plan, opened),
        aligner.notes(transport::spaces_of(plan))}) {
    notes.insert(notes.end(), more.begin(), more.end());
  }
  record["notes"] = notes;
  return record;
}

}  // namespace theseus::output
