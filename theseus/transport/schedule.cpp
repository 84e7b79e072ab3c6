#include "theseus/transport/schedule.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/error.h"

namespace theseus::transport {
namespace {

constexpr int64_t kProcess = 220'000'000;  // libtorch and ourselves
// Copies of the largest cross moment, in float64, that a solve holds at once.
constexpr double kSolveCopies = 11;

int64_t elements(const model::Parameter& parameter) {
  int64_t count = 1;
  for (const auto extent : parameter.shape) {
    count *= extent;
  }
  return count;
}

struct StageCost {
  double forward = 0, statistics = 0, solve = 0, carry = 0;
  int64_t weights = 0, rows = 0, moments = 0, workspace = 0;
};

class Estimator {
 public:
  explicit Estimator(const ScheduleInput& input) : in_(input) {
    for (const auto& parameter : in_.source.parameters) {
      source_weights_[parameter.block] += elements(parameter) * 4;
    }
    for (const auto& parameter : in_.target.parameters) {
      target_weights_[parameter.block] += elements(parameter) * 4;
    }
  }

  int64_t stages() const { return static_cast<int64_t>(in_.route.pairs.size()) + 2; }

  StageCost stage(int64_t stage) const {
    StageCost cost;
    const bool outer = stage == 0 || stage + 1 == stages();
    const auto pair = outer ? stats::BlockPair{} : in_.route.pairs[static_cast<size_t>(stage - 1)];
    const auto target_block = outer ? model::kOuter : pair.target;
    const auto source_block =
        outer ? model::kOuter : in_.route.source[static_cast<size_t>(pair.source)].run_as;
    cost.weights = outer ? 0 : source_weights_.at(source_block) + target_weights_.at(target_block);
    if (!outer) {
      add_forward(in_.source, source_block, in_.source_tokens, source_weights_, cost);
      add_forward(in_.target, target_block, in_.target_tokens, target_weights_, cost);
    }
    std::string prefix;
    if (!outer) {
      const auto [tower, first] = in_.target.tower_of(target_block);
      prefix = c10::str(tower->name, ".", target_block - first, ".");
    }
    const auto mine = [&](const std::string& space) {
      const bool block = model::is_in_block(space);
      return outer ? !block && stage != 0 : space.starts_with(prefix);
    };
    int64_t widest = 0;
    for (const auto& space : in_.observed) {
      if (mine(space)) {
        add_observed(space, source_block, cost, widest);
      }
    }
    cost.rows += widest;  // the source's rows at the target's places
    for (const auto& space : in_.needed) {
      if (mine(space)) {
        add_solved(space, source_block, cost);
      }
    }
    return cost;
  }

  int64_t state_bytes(int64_t sequences) const {
    int64_t bytes = 0;
    for (const auto& [architecture, tokens] :
         {std::pair(&in_.source, &in_.source_tokens), std::pair(&in_.target, &in_.target_tokens)}) {
      for (const auto& tower : architecture->towers) {
        if (const auto found = tokens->find(tower.name); found != tokens->end()) {
          bytes += sequences * found->second * tower.width * 4;
        }
      }
    }
    return bytes;
  }

  int64_t outer_weights() const {
    return source_weights_.at(model::kOuter) + target_weights_.at(model::kOuter);
  }

 private:
  void add_forward(
      const model::Architecture& architecture,
      int64_t block,
      const std::map<std::string, int64_t>& tokens,
      const std::map<int64_t, int64_t>& weights,
      StageCost& cost) const {
    const auto& tower = *architecture.tower_of(block).first;
    const auto found = tokens.find(tower.name);
    if (found == tokens.end()) {
      return;
    }
    const auto t = static_cast<double>(found->second);
    const auto n = static_cast<double>(in_.sequences);
    const auto inner = static_cast<double>(tower.heads * tower.head_dim);
    cost.forward += n * t * (2.0 * static_cast<double>(weights.at(block)) / 4 + 4 * t * inner);
  }

  std::pair<int64_t, int64_t> widths(const std::string& space, int64_t source_block) const {
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

  void add_observed(
      const std::string& space, int64_t source_block, StageCost& cost, int64_t& widest) const {
    const auto [ds, dt] = widths(space, source_block);
    const auto target = in_.target_tokens.find(model::tower_of_space(space));
    const auto source = in_.source_tokens.find(model::tower_of_space(space));
    if (target == in_.target_tokens.end() || source == in_.source_tokens.end()) {
      return;
    }
    const auto product = static_cast<double>(ds) * static_cast<double>(dt);
    cost.statistics +=
        2.0 * static_cast<double>(in_.sequences) * static_cast<double>(target->second) * product;
    cost.rows += in_.batch_size * (source->second * ds + target->second * dt) * 4;
    widest = std::max(widest, in_.batch_size * target->second * (ds + dt) * 4);
    cost.moments +=
        (ds * dt + (in_.grams.source ? ds * ds : 0) + (in_.grams.target ? dt * dt : 0)) * 8;
  }

  void add_solved(const std::string& space, int64_t source_block, StageCost& cost) const {
    const auto [ds, dt] = widths(space, source_block);
    const auto small = static_cast<double>(std::min(ds, dt));
    const auto large = static_cast<double>(std::max(ds, dt));
    // Gram, eigendecomposition, its inverse root, the product with C.
    cost.solve += small * small * (2 * large + 9 * small + 2 * small + 2 * large);
    cost.carry += 2 * small * large * static_cast<double>(in_.target.towers[0].width);
    cost.workspace =
        std::max(cost.workspace, static_cast<int64_t>(kSolveCopies * small * large * 8));
  }

  const ScheduleInput& in_;
  std::map<int64_t, int64_t> source_weights_, target_weights_;  // bytes by block
};

// Pairs of one target block stay together: their updates are added up.
std::vector<std::pair<int64_t, int64_t>> units_of(const stats::Route& route) {
  std::vector<std::pair<int64_t, int64_t>> units = {{0, 1}};
  for (size_t i = 0; i < route.pairs.size(); ++i) {
    const auto stage = static_cast<int64_t>(i) + 1;
    if (i > 0 && route.pairs[i].target == route.pairs[i - 1].target) {
      units.back().second = stage + 1;
    } else {
      units.emplace_back(stage, stage + 1);
    }
  }
  const auto last = static_cast<int64_t>(route.pairs.size()) + 1;
  units.emplace_back(last, last + 1);
  return units;
}

// What a container's limit leaves, or no limit.
int64_t left_in_container() {
  int64_t most = 0, used = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  return limit >> most && current >> used && most > used ? most - used
                                                         : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    if (word == "MemAvailable:") {
      int64_t kilobytes = 0;
      file >> kilobytes;
      return std::min(kilobytes * 1024, left_in_container());
    }
  }
  throw InputError("cannot tell how much memory is free; say --memory");
}

Schedule make_schedule(const ScheduleInput& input, int64_t memory) {
  const Estimator estimator(input);
  std::vector<StageCost> costs;
  Schedule schedule;
  for (int64_t stage = 0; stage < estimator.stages(); ++stage) {
    costs.push_back(estimator.stage(stage));
    schedule.cost.forward += costs.back().forward;
    schedule.cost.statistics += costs.back().statistics;
    schedule.cost.solve += costs.back().solve;
    schedule.cost.carry += costs.back().carry;
  }
  const auto peak_of = [&](int64_t first, int64_t last) {
    int64_t moments = 0, busiest = 0, weights = 0;
    for (int64_t stage = first; stage < last; ++stage) {
      const auto& cost = costs[static_cast<size_t>(stage)];
      moments += cost.moments;
      weights += cost.weights;
      busiest = std::max({busiest, cost.rows, cost.workspace});
    }
    return kProcess + estimator.outer_weights() + weights + moments + busiest;
  };
  const auto batch_states = estimator.state_bytes(std::min(input.batch_size, input.sequences));
  const auto turns = input.batch_size * input.processes;
  const auto all_states = input.processes == 1
                              ? estimator.state_bytes(input.sequences)
                              : (input.sequences + turns - 1) / turns * batch_states;
  int64_t largest = 0;
  const auto units = units_of(input.route);
  for (const auto& [first, last] : units) {
    largest = std::max(largest, peak_of(first, last));
  }
  require(
      largest + batch_states <= memory, "one block of these models needs ",
      (largest + batch_states) / 1'000'000, " MB, and --memory allows ", memory / 1'000'000,
      " MB; a smaller --batch-size needs less");
  schedule.cost.states = all_states;
  schedule.spill = largest + all_states > memory;
  if (!schedule.spill) {
    schedule.cost.peak = largest + all_states;
    int64_t blocks = 0;  // in the last group; what comes before the blocks has no maps
    for (const auto& [first, last] : units) {
      const bool room = input.processes > 1 && first > 0 && blocks < input.processes;
      const auto peak = room ? peak_of(schedule.groups.back().first, last) + all_states : 0;
      if (room && peak <= memory) {
        schedule.groups.back().second = last;
        schedule.cost.peak = std::max(schedule.cost.peak, peak);
        ++blocks;
      } else {
        schedule.groups.emplace_back(first, last);
        blocks = first > 0 ? 1 : 0;
      }
    }
    return schedule;
  }
  schedule.cost.states = estimator.state_bytes(input.sequences);
  for (const auto& [first, last] : units) {
    if (!schedule.groups.empty() && !input.one_by_one &&
        peak_of(schedule.groups.back().first, last) + batch_states <= memory) {
      schedule.groups.back().second = last;
    } else {
      schedule.groups.emplace_back(first, last);
    }
  }
  for (const auto& [first, last] : schedule.groups) {
    schedule.cost.peak = std::max(schedule.cost.peak, peak_of(first, last) + batch_states);
  }
  return schedule;
}

}  // namespace theseus::transport
