#include "theseus/transport/aligner.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/base/memory.h"
#include "theseus/stats/add_up.h"
#include "theseus/stats/gradient_moments.h"
#include "theseus/stats/supervision.h"
#include "theseus/transport/compatible.h"
#include "theseus/transport/resume.h"
#include "theseus/transport/shares.h"
#include "theseus/transport/similarity.h"

namespace theseus::transport {

Aligner::Aligner(
    model::Model& source,
    model::Model& target,
    const stats::Calibration* calibration,
    const AlignOptions& options,
    const Watch& watch)
    : source_(source), target_(target), calibration_(calibration), options_(options) {
  prepare();
  const auto& from = source.architecture();
  const auto& to = target.architecture();
  if (depths_differ(from, to) && options.depth != Depth::kStretch) {
    require(
        calibration != nullptr, "--depth ", word_of(options.depth),
        " compares activations, so it needs examples with any method");
    similarity_ = block_similarity(
        source, target, *calibration, matchers_,
        [&](int64_t done, int64_t all) {
          watch(static_cast<double>(done), static_cast<double>(all), "comparing blocks");
        },
        processes());
  }
  route_ = make_route(from, to, options.depth, similarity_);
}

Aligner::Aligner(
    model::Model& source,
    model::Model& target,
    const stats::Calibration* calibration,
    const AlignOptions& options,
    const stats::Route& route,
    const at::Tensor& similarity)
    : source_(source),
      target_(target),
      calibration_(calibration),
      options_(options),
      route_(route),
      similarity_(similarity) {
  prepare();
}

void Aligner::prepare() {
  require_one_family(source_, target_);
  method_ = &maps::method(options_.method);
  needs_ = maps::needs_of(*method_, options_.maps);
  options_.maps.stream = options_.maps.stream || method_->stream;
  require(
      calibration_ != nullptr || !method_->needs.moments, "method ", options_.method,
      " needs examples");
  require(
      processes().alone() || !needs_.gradients, "method ", options_.method,
      " runs as one process: start it without a launcher");
  for (size_t t = 0; t < source_.architecture().towers.size() && method_->same_widths; ++t) {
    const auto& from = source_.architecture().towers[t];
    const auto& to = target_.architecture().towers[t];
    require(
        from.width == to.width, "method ", options_.method, " needs equal widths, and the ",
        from.name, " tower is ", from.width, " wide in the source and ", to.width,
        " in the target; procrustes maps between any two");
  }
  if (calibration_ == nullptr) {
    return;
  }
  matchers_ = matchers_of(target_.architecture(), options_.tokens, calibration_->has_spans());
  same_words_ = require_one_vocabulary(source_, target_, *calibration_, matchers_);
  if (needs_.gradients) {
    stats::loss_of(source_, *calibration_, stats::Side::kSource);
    stats::loss_of(target_, *calibration_, stats::Side::kTarget);
  }
  source_tokens_ = tokens_by_tower(source_, "source", calibration_->source(0));
  target_tokens_ = tokens_by_tower(target_, "target", calibration_->target(0));
  walked_ = calibration_->in_batches_of(sequences_at_a_time());
}

// A GPU wants batches as they are. A CPU is as fast with as many rows as are multiplied at a time, and they are what a walk holds.
// Texts that are matched by their offsets may have nothing to pair where there are few.
int64_t Aligner::sequences_at_a_time() const {
  if (calibration_ == nullptr) {
    return options_.sampling.batch_size;
  }
  const auto batch = calibration_->batch_size();
  if (!device().is_cpu() || calibration_->has_spans()) {
    return batch;
  }
  int64_t longest = 1;
  for (const auto* tokens : {&source_tokens_, &target_tokens_}) {
    for (const auto& [tower, count] : *tokens) {
      longest = std::max(longest, count);
    }
  }
  const auto parts = (batch * longest + stats::kRowsAtATime - 1) / stats::kRowsAtATime;
  return (batch + parts - 1) / parts;
}

std::set<std::string> Aligner::towers() const {
  std::set<std::string> result;
  for (const auto& tower : target_.architecture().towers) {
    if (!method_->needs.moments ||
        (source_tokens_.contains(tower.name) && target_tokens_.contains(tower.name))) {
      result.insert(tower.name);
    }
  }
  return result;
}

std::map<std::string, std::string> Aligner::matcher_words() const {
  std::map<std::string, std::string> words;
  for (const auto& [tower, matcher] : matchers_) {
    for (const auto& [name, object] : stats::all_matchers()) {
      if (object == matcher && towers().contains(tower)) {
        words[tower] = name;
      }
    }
  }
  return words;
}

stats::Grams Aligner::grams() const {
  return {.source = needs_.source_gram, .target = needs_.target_gram};
}

std::map<std::string, int64_t> Aligner::rows_by_tower() const {
  std::map<std::string, int64_t> rows;
  const auto words = matcher_words();
  for (const auto& [tower, tokens] : target_tokens_) {
    const auto found = words.find(tower);
    if (found != words.end()) {
      const bool one = found->second == "mean" || found->second == "cls";  // row a sequence
      const auto all = calibration_->sequences() * tokens;
      const bool masked =  // by attention_mask, which is not of what an encoder's decoder is given
          tower != "decoder" || !model::takes(target_.architecture().inputs, "decoder_input_ids");
      rows[tower] = one      ? calibration_->sequences()
                    : masked ? std::min(calibration_->unpadded().value_or(all), all)
                             : all;
    }
  }
  return rows;
}

SpaceSet Aligner::rows_kept_of(const SpaceSet& observed) const {
  return rows_kept(
      observed, source_.architecture(), target_.architecture(), rows_by_tower(),
      options_.statistics);
}

std::vector<std::string> Aligner::notes(const SpaceSet& needed) const {
  std::map<std::string, int64_t> widest;  // by tower, in the narrower of the two models
  for (const auto& [space, there] : source_.architecture().spaces) {
    const auto same = std::find_if(needed.begin(), needed.end(), [&, name = space](const auto& it) {
      return model::role_of(it) == model::role_of(name);
    });
    if (same != needed.end()) {
      auto& width = widest[model::tower_of_space(space)];
      const auto here = target_.architecture().spaces.at(*same).width;
      width = std::max(width, std::min(there.width, here));
    }
  }
  std::vector<std::string> notes;
  if (!same_words_) {
    notes.emplace_back(
        "the vocabularies are of one size, but not both models have tokenizer files to compare: "
        "token i must mean the same in both");
  }
  if (method_->needs.moments && c10::elementSize(target_.weights().placement().dtype) < 4) {
    notes.emplace_back(
        "the models run in half precision: its rounding fills directions that the examples do not, "
        "so "
        "ranks and conditions are larger than they are");
  }
  const Solver solver(source_, target_, route_, *method_, options_.maps);
  if (options_.maps.stream && solver.solved_for(needed) == needed) {
    notes.emplace_back(
        "method stream makes no difference: the update changes no layer that adds to the residual "
        "stream");
  }
  for (const auto& [tower, rows] : rows_by_tower()) {
    if (!method_->needs.moments || !widest.contains(tower)) {
      continue;
    }
    if (rows < widest.at(tower)) {
      notes.push_back(c10::str(
          tower, ": at most ", rows, " rows for spaces up to ", widest.at(tower),
          " wide: the statistics cannot determine the maps wholly; more examples would"));
    }
  }
  return notes;
}

Schedule Aligner::schedule(const SpaceSet& needed) const {
  const Solver solver(source_, target_, route_, *method_, options_.maps);
  const auto observed = solver.observed_for(needed);
  const auto solved = solver.solved_for(needed);
  const ScheduleInput input{
      .source = source_.architecture(),
      .target = target_.architecture(),
      .route = route_,
      .observed = observed,
      .kept = rows_kept_of(observed),
      .needed = solved,
      .columns = solver.columns_of(solved),
      .grams = grams(),
      .source_tokens = source_tokens_,
      .target_tokens = target_tokens_,
      .rows = rows_by_tower(),
      .batch_size = sequences_at_a_time(),
      .sequences = calibration_ == nullptr ? 0 : calibration_->sequences(),
      .state_element = static_cast<int64_t>(c10::elementSize(target_.weights().placement().dtype)),
      .gpu = !device().is_cpu(),
      .processes = processes().size(),
      .loads = loads_};
  return make_schedule(input, options_.memory > 0 ? options_.memory : available_memory(device()));
}

std::map<int64_t, stats::Moments> Aligner::collect_gradients(
    const SpaceSet& graded, const std::filesystem::path& work, const Watch& watch) {
  const auto file = work / kGradientsFile;
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) {
    return read_moments(file);
  }
  const Stopwatch stopwatch(seconds_, "gradients");
  stats::GradientMoments gradients(
      source_, target_, route_, {.matchers = matchers_, .grams = grams(), .observed = graded});
  const auto batches = calibration_->batches();
  for (int64_t batch = 0; batch < batches; ++batch) {
    watch(static_cast<double>(batch), static_cast<double>(batches), "gradients");
    with_context(c10::str("running batch ", batch + 1, " of ", batches), [&] {
      gradients.add(*calibration_, batch);
    });
  }
  require(
      !gradients.result().empty(),
      "the loss reaches nothing that is carried: labels and update belong to other parts of the "
      "model");
  stats::require_finite(gradients.result());
  write_moments(file, gradients.result());
  return read_moments(file);  // also now, so that an interrupted job computes with the same
}

Position Aligner::resume(
    WalkMemory& memory, std::map<int64_t, stats::Moments>& moments, stats::Moments& outer) const {
  Position position;
  if (processes().first()) {
    memory.load(position, moments, outer);
  }
  agree(processes(), position, outer);
  const auto bring =
      [&](stats::Moments& found) {  // files and other processes give them on the host
        for (auto& [space, pair] : found) {
          pair = pair.to(device());
        }
      };
  bring(outer);
  for (auto& [stage, found] : moments) {
    bring(found);
  }
  return position;
}

void Aligner::catch_up(
    const Schedule& plan, int64_t first, WalkMemory& memory, const Watch& watch) {
  stats::Walk walk(source_, target_, route_, {.matchers = matchers_});
  std::map<int64_t, stats::Moments> nothing;
  const auto batches = walked_->batches();
  for (const auto& group : plan.groups) {
    if (group.first >= first) {
      break;
    }
    watch(static_cast<double>(group.first), static_cast<double>(first), "walking to where it was");
    for (int64_t batch = processes().rank(); batch < batches; batch += processes().size()) {
      auto state = memory.take(group.first, batch);
      walk.run(
          group.first, group.second, walked_->pair(batch, group.first, device().is_cuda()), state,
          nothing);
      memory.put(group.second, batch, std::move(state));
    }
    walk.drop(group.first, group.second);
  }
}

void Aligner::solve_group(
    Solver& solver,
    std::pair<int64_t, int64_t> group,
    const SpaceSet& needed,
    std::map<int64_t, stats::Moments>& moments,
    const Sink& sink,
    Aside& handover,
    Aside& storing) {
  std::map<int64_t, MapSet> ahead;  // this process's share
  if (!processes().alone()) {
    const Stopwatch watch(solving_, "solve");
    auto mine = share_of(processes(), solver, group, needed, method_->needs.weight_cross);
    for (auto stage = group.first; stage < group.second; ++stage) {
      solver.remember_outer(moments[stage]);
      ahead[stage] =
          mine[stage].empty() ? MapSet() : solver.solve(stage, moments[stage], mine[stage]);
    }
  }
  const auto hand_over = [this, &sink, &storing, group](
                             int64_t stage, const MapSet& maps, const stats::Moments& seen) {
    {
      const Stopwatch watch(handing_over_, "carry");
      sink.stage(stage, maps, seen);
    }
    if (stage + 1 == group.second) {
      storing.run([this, store = sink.group(group.first, group.second)] {
        const Stopwatch watch(storing_, "store");
        store();
      });
    }
  };
  for (auto stage = group.first; stage < group.second; ++stage) {
    auto solved = [&] {
      const Stopwatch watch(solving_, processes().alone() ? "solve" : "exchange");
      return processes().alone() ? solver.solve(stage, moments[stage], needed)
                                 : gathered(processes(), ahead[stage], device());
    }();
    if (processes().first()) {
      handover.run([hand_over, stage, maps = std::move(solved), seen = std::move(moments[stage])] {
        hand_over(stage, maps, seen);
      });
    }
    moments.erase(stage);
    ahead.erase(stage);
    if (device().is_cpu()) {
      give_back_freed_memory();
    }
  }
}

void Aligner::run(
    const SpaceSet& given,
    const std::filesystem::path& directory,
    const Sink& sink,
    const Watch& watch,
    double seconds) {
  const auto needed = agreed(processes(), given);
  const auto work = processes().alone() ? directory : agreed(processes(), directory);
  const auto plan = agreed(
      processes(), processes().first()
                       ? agreed_schedule(work, schedule(needed), walked_ ? walked_->batches() : 0)
                       : Schedule());
  Solver solver(source_, target_, route_, *method_, options_.maps);
  if (const auto graded = solver.graded_for(needed); !graded.empty()) {
    solver.use_gradients(collect_gradients(graded, work, watch));
  }
  const auto observed = solver.observed_for(needed);
  stats::Walk walk(
      source_, target_, route_,
      {.matchers = matchers_,
       .grams = grams(),
       .observed = observed,
       .kept = rows_kept_of(observed)});
  const auto batches = method_->needs.moments ? walked_->batches() : 0;
  WalkMemory memory(work, batches, plan.spill, seconds, !processes().alone(), device());
  // On a GPU the next group is walked while this one is solved and the one before is carried. Not where a group
  // is all that memory takes, or where the walk's products are rounded and the others are of the same kind; and
  // processes exchange what they know in one order, so in one thread.
  const bool rounded = target_.weights().placement().tf32 && !multiplies_float64_fast(device());
  const bool one_by_one = sink.runs_models || rounded;
  const auto beside = one_by_one ? c10::Device(c10::kCPU) : device();
  Aside storing(plan.spill ? c10::Device(c10::kCPU) : beside), handover(beside, 0, storing);
  // The first one takes longer, as kernels are loaded for it: the walk goes on meanwhile.
  Aside solving(
      processes().alone() && !plan.spill ? beside : c10::Device(c10::kCPU), /*waiting=*/1, storing);
  std::map<int64_t, stats::Moments> moments;
  const auto position = resume(memory, moments, solver.outer());
  if (sink.begin) {
    sink.begin(position.first);
  }
  if (!processes().alone() && !plan.spill && batches > 0) {
    catch_up(plan, position.first, memory, watch);
  }
  const auto save = [&](const Position& reached) {
    if (processes().first() && memory.is_due(reached)) {
      solving.wait();
      handover.wait();
      storing.wait();
      if (sink.sync) {
        sink.sync();  // what is saved must not be ahead of what is on disk
      }
      memory.save(reached, moments, solver.outer());
    }
  };
  const auto steps = static_cast<double>(batches + 1) * static_cast<double>(walk.stages());
  for (const auto& group : plan.groups) {
    const auto first = group.first, last = group.second;
    if (first < position.first) {
      continue;
    }
    const auto tell = [&](int64_t batch, const char* what) {
      const auto done = static_cast<double>(first) * static_cast<double>(batches + 1) +
                        static_cast<double>(batch) * static_cast<double>(last - first);
      watch(done, steps, c10::str(what, " stage ", first + 1, " of ", walk.stages()));
    };
    for (auto batch = (first == position.first ? position.batch : 0) + processes().rank();
         batch < batches; batch += processes().size()) {
      tell(batch, "walking");
      auto state = memory.take(first, batch);
      with_context(c10::str("running part ", batch + 1, " of ", batches, " of the examples"), [&] {
        walk.run(first, last, walked_->pair(batch, first, device().is_cuda()), state, moments);
      });
      memory.put(last, batch, std::move(state));
      save({first, batch + 1});
    }
    if (!device().is_cpu()) {
      stats::require_finite(moments);
    }
    walk.drop(first, last);
    if (first == 0 && walked_) {
      walked_->forget_images();
    }
    if (device().is_cpu()) {
      give_back_freed_memory();
    }
    {
      const Stopwatch watch_exchange(seconds_, "exchange");
      stats::add_up(processes(), device(), moments);
    }
    tell(batches, "solving");
    solving.run([&, group, seen = std::exchange(moments, {})]() mutable {
      solve_group(solver, group, needed, seen, sink, handover, storing);
    });
    save({last, 0});
  }
  solving.wait();
  handover.wait();
  storing.wait();
  for (const auto& spent : {walk.seconds(), solving_, handing_over_, storing_}) {
    for (const auto& [phase, seconds_of_it] : spent) {
      seconds_[phase] += seconds_of_it;
    }
  }
  watch(steps, steps, "aligned");
  if (processes().first()) {
    if (memory.is_saved() && sink.end) {
      sink.end();
    }
    memory.clear();
    std::error_code ignored;
    std::filesystem::remove(work / kGradientsFile, ignored);
  }
}

}  // namespace theseus::transport
