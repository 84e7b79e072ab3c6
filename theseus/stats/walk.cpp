#include "theseus/stats/walk.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/device.h"
#include "theseus/base/error.h"

namespace theseus::stats {
namespace {

std::set<std::string> roles_of(const std::set<std::string>& spaces) {
  std::set<std::string> roles;
  for (const auto& space : spaces) {
    roles.insert(model::role_of(space));
  }
  return roles;
}

int64_t tokens_of(const Sequences& side) {
  return side.kept.defined() ? side.kept.sum().item<int64_t>()
                             : side.rows.size(0) * side.rows.size(1);
}

// Matching and summing are exact, whatever the models compute in.
at::Tensor in_full(const at::Tensor& rows) {
  return rows.scalar_type() == at::kDouble ? rows : rows.to(at::kFloat);
}

}  // namespace

struct Walk::Side {
  model::Model& model;
  model::Pass pass;
  const std::map<std::string, at::Tensor>& spans;
  std::map<std::string, at::Tensor> before = {};  // streams as they entered the current block
  int64_t block = -1;                             // the one that has run; -1: none yet
  Rows rows = {};                                 // of that block
};

at::Tensor blended(
    const model::Model& source, const SourceBlock& block, const std::string& tensor) {
  const auto& parameters = source.architecture().parameters;
  const auto role = model::role_of(tensor);
  at::Tensor sum;
  for (const auto& item : block.parts) {
    const auto part = item.first;
    const auto share = item.second;
    const auto found =
        std::find_if(parameters.begin(), parameters.end(), [&](const model::Parameter& parameter) {
          return parameter.block == part && model::role_of(parameter.tensor) == role;
        });
    require<InternalError>(
        found != parameters.end(), "block ", part, " has no tensor like ", tensor);
    const auto value = source.checkpoint().tensor(found->stored).to(at::kFloat);
    const auto term = share == 1 ? value : value * share;
    sum = sum.defined() ? sum + term : term;
  }
  return sum;
}

Walk::Walk(model::Model& source, model::Model& target, const Route& route, Collect collect)
    : source_(source),
      target_(target),
      route_(route),
      collect_(std::move(collect)),
      source_capture_(source.architecture(), roles_of(collect_.observed)),
      target_capture_(target.architecture(), roles_of(collect_.observed)) {}

void require_finite(const std::map<int64_t, Moments>& moments) {
  for (const auto& [stage, spaces] : moments) {
    for (const auto& [space, pair] : spaces) {
      with_context("pairing the rows of " + space, [&found = pair] { found.require_finite(); });
    }
  }
}

void run_source_block(model::Model& source, const SourceBlock& block, model::Pass& pass) {
  if (block.own()) {
    source.run_block(block.run_as, pass);
    return;
  }
  std::vector<std::string> replaced;
  for (const auto& parameter : source.architecture().parameters) {
    if (parameter.block == block.run_as &&
        std::find(replaced.begin(), replaced.end(), parameter.tensor) == replaced.end()) {
      source.weights().replace(parameter.tensor, blended(source, block, parameter.tensor));
      replaced.push_back(parameter.tensor);
    }
  }
  source.run_block(block.run_as, pass);
  for (const auto& tensor : replaced) {
    source.weights().restore(tensor);
  }
}

Sequences Walk::sequences(
    const Side& side, const std::string& tower, const at::Tensor& rows) const {
  Sequences result{.rows = rows, .spans = find_spans(side.spans, side.pass.batch, tower)};
  if (const auto kept = side.pass.kept.find(tower); kept != side.pass.kept.end()) {
    result.kept = kept->second;
  }
  for (const auto& candidate : side.model.architecture().towers) {
    if (candidate.name == tower) {
      result.grid = candidate.grid();
    }
  }
  return result;
}

void Walk::add(int64_t stage, Side& source, Side& target, Moments& moments) {
  // Rows that the next pair does not need go as soon as they are summed up.
  const bool more = stage >= 1 && stage + 2 < stages();
  const auto next = more ? route_.pairs[static_cast<size_t>(stage)] : BlockPair{-1, -1, 1};
  const auto taken = [](at::Tensor& rows, bool again) { return again ? rows : std::move(rows); };
  Rows by_role;
  for (auto& [space, rows] : source.rows) {
    by_role[model::role_of(space)] = taken(rows, more && next.source == source.block);
  }
  for (auto& seen : target.rows) {
    const auto& space = seen.first;
    const auto other = by_role.find(model::role_of(space));
    if (other == by_role.end() || !collect_.observed.contains(space)) {
      continue;
    }
    if (!model::is_in_block(space) &&
        outer_stage_.try_emplace(space, stage).first->second != stage) {
      continue;
    }
    with_context("pairing the rows of " + space, [&] {
      PairedRows paired{
          in_full(taken(other->second, false)),
          in_full(taken(seen.second, more && next.target == target.block))};
      int64_t tokens = 0;
      if (paired.target.dim() == 3) {
        const auto tower = model::tower_of_space(space);
        const auto left = sequences(source, tower, paired.source);
        const auto right = sequences(target, tower, paired.target);
        paired = collect_.matchers.at(tower)->match(left, right);
        tokens = std::min(tokens_of(left), tokens_of(right));
      }
      require(
          paired.source.size(0) == paired.target.size(0), "the source has ", paired.source.size(0),
          " rows, the target ", paired.target.size(0));
      if (collect_.kept.contains(space)) {
        moments[space].keep(paired.source, paired.target, tokens);
      } else {
        const auto grams =
            grams_between(collect_.grams, paired.source.size(-1), paired.target.size(-1));
        moments[space].add(paired.source, paired.target, grams, tokens);
      }
    });
  }
}

// Brings both sides through one stage.
void Walk::step(int64_t stage, Side& source, Side& target) {
  if (stage == 0 || stage + 1 == stages()) {
    for (auto* side : {&source, &target}) {
      with_context(c10::str("running ", side->model.location().weights.string()), [&] {
        stage == 0 ? side->model.network().enter(side->pass)
                   : side->model.network().leave(side->pass);
      });
      side->block = -1;
    }
    source.rows = source_capture_.take();
    target.rows = target_capture_.take();
    return;
  }
  const auto& pair = route_.pairs[static_cast<size_t>(stage - 1)];
  if (source.block != pair.source) {
    source.rows.clear();
    source.before = source.pass.streams;
    source.block = pair.source;
    run_source_block(source_, route_.source[static_cast<size_t>(pair.source)], source.pass);
    source.rows = source_capture_.take();
  }
  if (target.block != pair.target) {
    target.rows.clear();
    target.before = target.pass.streams;
    target.block = pair.target;
    target_.run_block(pair.target, target.pass);
    target.rows = target_capture_.take();
  }
}

void Walk::run(
    int64_t first,
    int64_t last,
    const PairedBatch& batch,
    WalkState& state,
    std::map<int64_t, Moments>& moments) {
  Side source{source_, source_.begin(batch.source, &source_capture_), batch.source_spans};
  Side target{target_, target_.begin(batch.target, &target_capture_), batch.target_spans};
  const bool tf32 = target_.weights().placement().tf32;
  // Nothing is learned from what a head writes, and over a vocabulary it would be large.
  source.pass.last_token_only = target.pass.last_token_only = true;
  source.pass.streams = std::move(state.source);
  source.pass.kept = std::move(state.source_kept);
  target.pass.streams = std::move(state.target);
  target.pass.kept = std::move(state.target_kept);
  for (int64_t stage = first; stage < last; ++stage) {
    {
      const Stopwatch watch(seconds_, "forward");
      const Tf32 rounded(tf32);
      step(stage, source, target);
    }
    const Stopwatch watch(seconds_, "statistics");
    add(stage, source, target, moments[stage]);
  }
  // A block that the next pair needs too is run again from where it began.
  const bool more = last >= 1 && last + 1 < stages();
  const auto next = more ? route_.pairs[static_cast<size_t>(last - 1)] : BlockPair{-1, -1, 1};
  const auto left = [&](const Side& side, int64_t next_block) {
    return more && next_block == side.block ? side.before : side.pass.streams;
  };
  state = {
      .source = left(source, next.source),
      .source_kept = source.pass.kept,
      .target = left(target, next.target),
      .target_kept = target.pass.kept};
}

void Walk::drop(int64_t first, int64_t last) {
  for (int64_t stage = std::max<int64_t>(first, 1); stage < std::min(last, stages() - 1); ++stage) {
    const auto& pair = route_.pairs[static_cast<size_t>(stage - 1)];
    source_.weights().drop_block(route_.source[static_cast<size_t>(pair.source)].run_as);
    target_.weights().drop_block(pair.target);
  }
}

}  // namespace theseus::stats
