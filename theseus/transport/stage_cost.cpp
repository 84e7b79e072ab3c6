#include "theseus/transport/stage_cost.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/maps/certify.h"
#include "theseus/maps/factors.h"

namespace theseus::transport {
namespace {

// Copies of the largest cross moment, in float64, that a solve holds at once.
constexpr double kSolveCopies = 5.5;
// Copies of the rows and of the factors, in float64, that a solve from rows holds at once.
constexpr int64_t kRowCopies = 5, kFactorCopies = 3;

double real(int64_t number) {
  return static_cast<double>(number);
}

int64_t elements(const model::Parameter& parameter) {
  int64_t count = 1;
  for (const auto extent : parameter.shape) {
    count *= extent;
  }
  return count;
}

}  // namespace

Estimator::Estimator(const ScheduleInput& input) : in_(input) {
  for (const auto& parameter : in_.source.parameters) {
    source_weights_[parameter.block] += elements(parameter) * 4;
  }
  for (const auto& parameter : in_.target.parameters) {
    target_weights_[parameter.block] += elements(parameter) * 4;
  }
}

StageCost Estimator::stage(int64_t stage) const {
  StageCost cost;
  const bool outer = stage == 0 || stage + 1 == stages();
  const auto pair = outer ? stats::BlockPair{} : in_.route.pairs[static_cast<size_t>(stage - 1)];
  const Blocks blocks{
      outer ? model::kOuter : in_.route.source[static_cast<size_t>(pair.source)].run_as,
      outer ? model::kOuter : pair.target};
  std::string prefix;
  if (!outer) {
    cost.weights = placed(source_weights_.at(blocks.source) + target_weights_.at(blocks.target));
    add_forward(in_.source, /*is_source=*/true, blocks.source, cost);
    add_forward(in_.target, /*is_source=*/false, blocks.target, cost);
    const auto [tower, first] = in_.target.tower_of(blocks.target);
    prefix = c10::str(tower->name, ".", blocks.target - first, ".");
  }
  const auto mine = [&](const std::string& space) {
    const bool block = model::is_in_block(space);
    return outer ? !block && stage != 0 : space.starts_with(prefix);
  };
  int64_t widest = 0;
  for (const auto& space : in_.observed) {
    if (mine(space)) {
      add_observed(space, blocks, cost, widest);
    }
  }
  cost.rows += widest;  // the source's rows at the target's places
  for (const auto& space : in_.needed) {
    if (mine(space)) {
      add_solved(space, blocks, cost);
    }
  }
  for (const auto& load : in_.loads) {
    if (load.target->block == blocks.target && stage != 0) {
      add_carried(load, blocks, cost);
    }
  }
  return cost;
}

int64_t Estimator::state_bytes(int64_t sequences) const {
  int64_t bytes = 0;
  for (const auto& [architecture, tokens] :
       {std::pair(&in_.source, &in_.source_tokens), std::pair(&in_.target, &in_.target_tokens)}) {
    for (const auto& tower : architecture->towers) {
      if (const auto found = tokens->find(tower.name); found != tokens->end()) {
        bytes += sequences * found->second * tower.width * in_.state_element;
      }
    }
  }
  return bytes;
}

int64_t Estimator::outer_weights() const {
  return placed(source_weights_.at(model::kOuter) + target_weights_.at(model::kOuter));
}

// On a GPU weights are what the models compute in.
int64_t Estimator::placed(int64_t float32) const {
  return in_.gpu ? float32 / 4 * in_.state_element : float32;
}

void Estimator::add_forward(
    const model::Architecture& model, bool is_source, int64_t block, StageCost& cost) const {
  const auto& tower = *model.tower_of(block).first;
  const auto& tokens = is_source ? in_.source_tokens : in_.target_tokens;
  const auto found = tokens.find(tower.name);
  if (found == tokens.end()) {
    return;
  }
  const auto weights = (is_source ? source_weights_ : target_weights_).at(block);
  const auto t = found->second;
  const auto inner = tower.heads * tower.head_dim;
  cost.forward += real(in_.sequences * t) * (real(weights) / 2 + 4 * real(t * inner));
  // What a block holds at once: three of the MLP's width and six of the stream's, or the attention's weights;
  // for as many sequences as Model::run_block takes together.
  const auto activation = t * tower.mlp * 4;
  const auto cache =
      std::max<int64_t>(4 << 20, tower.width * (4 * tower.width + 2 * tower.mlp) * 4);
  const auto batch = std::min(in_.batch_size, in_.sequences);
  const auto fitting = std::max<int64_t>(1, cache / std::max<int64_t>(1, activation));
  const auto together = in_.gpu ? batch : std::min(batch, fitting);
  const auto held = t * (3 * tower.mlp + 6 * tower.width) + 2 * tower.heads * t * t;
  cost.rows = std::max(cost.rows, together * held * 4);
}

Estimator::Widths Estimator::widths(const std::string& space, int64_t source_block) const {
  auto own = space;
  if (source_block != model::kOuter) {
    const auto [tower, first] = in_.source.tower_of(source_block);
    own = model::in_block(space, source_block - first);
  }
  const auto found = in_.source.spaces.find(own);
  return {
      found == in_.source.spaces.end() ? 0 : found->second.width,
      in_.target.spaces.at(space).width};
}

int64_t Estimator::rows_of(const std::string& space) const {
  if (const auto known = in_.rows.find(model::tower_of_space(space)); known != in_.rows.end()) {
    return known->second;
  }
  const auto found = in_.target_tokens.find(model::tower_of_space(space));
  return found == in_.target_tokens.end() ? 0 : in_.sequences * found->second;
}

void Estimator::add_observed(
    const std::string& space, const Blocks& blocks, StageCost& cost, int64_t& widest) const {
  const auto [ds, dt] = widths(space, blocks.source);
  const auto target = in_.target_tokens.find(model::tower_of_space(space));
  const auto source = in_.source_tokens.find(model::tower_of_space(space));
  if (target == in_.target_tokens.end() || source == in_.source_tokens.end()) {
    return;
  }
  const auto batch = std::min(in_.batch_size, in_.sequences);
  cost.rows += batch * (source->second * ds + target->second * dt) * 4;
  widest = std::max(widest, batch * target->second * (ds + dt) * 4);
  if (in_.kept.contains(space)) {
    cost.moments += rows_of(space) * (ds + dt) * 4;
    return;
  }
  cost.statistics += 2 * real(rows_of(space)) * real(ds * dt);
  const auto grams = stats::grams_between(in_.grams, ds, dt);
  const auto sums = (ds * dt + (grams.source ? ds * ds : 0) + (grams.target ? dt * dt : 0)) * 8;
  cost.moments += sums;
  cost.files += sums;
}

std::string Estimator::find_kept(const std::string& space) const {
  if (in_.kept.contains(space)) {
    return space;
  }
  for (const auto& layer : in_.target.linears) {
    const bool writes = std::find(layer.out.begin(), layer.out.end(), space) != layer.out.end();
    if (writes && !in_.observed.contains(space) && in_.kept.contains(layer.in)) {
      return layer.in;
    }
  }
  return {};
}

int64_t Estimator::columns_of(const std::string& space, const Blocks& blocks) const {
  const auto seen = find_kept(space);
  if (seen.empty()) {
    return 0;
  }
  const auto [ds, dt] = widths(space, blocks.source);
  const auto each = in_.columns.find(space);
  const auto columns = each == in_.columns.end() ? 0 : each->second * rows_of(seen);
  return maps::is_worthwhile(columns, ds, dt) ? columns : 0;
}

void Estimator::add_solved(const std::string& space, const Blocks& blocks, StageCost& cost) const {
  const auto [ds, dt] = widths(space, blocks.source);
  const auto columns = columns_of(space, blocks);
  const auto map = (columns > 0 ? columns * (ds + dt) : ds * dt) * 4;
  cost.maps += map;
  cost.factored += columns > 0 ? 1 : 0;
  cost.files += map;
  if (const auto seen = find_kept(space); !seen.empty()) {
    add_solved_from_rows(space, seen, blocks, cost);
    return;
  }
  const auto small = real(std::min(ds, dt));
  const auto large = real(std::max(ds, dt));
  // Gram, eigendecomposition, its inverse root, the product with C.
  const auto solve = small * small * (2 * large + 9 * small + 2 * small + 2 * large);
  cost.solve += solve;
  cost.solve_small += std::min(ds, dt) <= maps::kSmall ? solve : 0;
  cost.solving = std::max(cost.solving, static_cast<int64_t>(kSolveCopies * small * large * 8));
}

void Estimator::add_solved_from_rows(
    const std::string& space,
    const std::string& seen,
    const Blocks& blocks,
    StageCost& cost) const {
  const auto [ds, dt] = widths(space, blocks.source);
  const auto rows = rows_of(seen);
  const auto columns = columns_of(space, blocks);
  const auto both = ds + dt;
  // Two QR decompositions, the core, and the completion's products with r columns.
  cost.solve += real(rows) * real(rows) * (4 * real(both) + 25 * real(rows)) +
                8 * real(rows) * real(columns) * real(both);
  int64_t weight = 0;
  if (seen != space) {  // what a layer writes
    const auto [in_source, in_target] = widths(seen, blocks.source);
    cost.solve += 2 * real(rows) * (real(in_source * ds) + real(in_target * dt));
    weight = std::max(in_source * ds, in_target * dt) * 4;
  }
  const auto matrix = columns > 0 ? 0 : 3 * ds * dt * 4;
  cost.solving = std::max(
      cost.solving, weight + matrix + (kRowCopies * rows + kFactorCopies * columns) * both * 8);
}

// Of `rows` rows through the map of the space.
double Estimator::apply(const std::string& space, const Blocks& blocks, double rows) const {
  if (model::is_fixed(space)) {
    return 0;
  }
  const auto [ds, dt] = widths(space, blocks.source);
  const auto columns = columns_of(space, blocks);
  return 2 * rows * real(columns > 0 ? columns * (ds + dt) : ds * dt);
}

void Estimator::add_carried(const Load& load, const Blocks& blocks, StageCost& cost) const {
  const auto& to = *load.target;
  if (to.axes.size() != 2) {
    cost.arrived += elements(to) * 4;
    return;
  }
  const auto& from = load.source->shape;
  if (load.rank > 0) {
    cost.carry +=
        apply(to.axes[0], blocks, real(load.rank)) + apply(to.axes[1], blocks, real(load.rank));
    cost.arrived += load.rank * (to.shape[0] + to.shape[1]) * 4;
    return;
  }
  cost.carry +=
      apply(to.axes[0], blocks, real(from[1])) + apply(to.axes[1], blocks, real(to.shape[0]));
  cost.arrived += elements(to) * 4;
  // The delta of two models, half way, and there.
  const auto half = to.shape[0] * from[1];
  cost.carrying =
      std::max(cost.carrying, (2 * elements(*load.source) + 2 * half + elements(to)) * 4);
}

}  // namespace theseus::transport
