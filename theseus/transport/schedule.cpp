#include "theseus/transport/schedule.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <mutex>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/gpu.h"
#include "theseus/base/units.h"
#include "theseus/transport/stage_cost.h"

namespace theseus::transport {
namespace {

constexpr int64_t kProcess = 220'000'000;  // libtorch and ourselves
// CUDA's context and libraries as well, by measurement on an H200.
constexpr int64_t kProcessOnGpu = 2'500'000'000;
constexpr int64_t kConverted = 1'100'000'000;  // see PairMoments::add

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

// Hidden states, and the sums and rows of the group that has most of them.
int64_t saved_bytes(const std::vector<StageCost>& costs, const Schedule& schedule) {
  int64_t most = 0;
  for (const auto& [first, last] : schedule.groups) {
    int64_t moments = 0;
    for (int64_t stage = first; stage < last; ++stage) {
      moments += costs[static_cast<size_t>(stage)].moments;
    }
    most = std::max(most, moments);
  }
  return schedule.cost.states + most;
}

// What a container's limit leaves, or no limit.
int64_t left_in_container() {
  int64_t most = 0, used = 0;
  std::ifstream limit("/sys/fs/cgroup/memory.max"), current("/sys/fs/cgroup/memory.current");
  return limit >> most && current >> used && most > used ? most - used
                                                         : std::numeric_limits<int64_t>::max();
}

}  // namespace

int64_t available_memory(c10::Device device) {
  if (!device.is_cpu()) {
    static std::mutex mutex;
    static std::map<int, int64_t> first;
    const std::lock_guard lock(mutex);
    if (const auto known = first.find(device.index()); known != first.end()) {
      return known->second;
    }
    const auto memory = memory_of_gpu(device.index());
    require(memory.has_value(), "cannot tell how much memory ", device, " has free; say --memory");
    return first[device.index()] = memory->first;
  }
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
    schedule.cost.solve_small += costs.back().solve_small;
    schedule.cost.carry += costs.back().carry;
    schedule.cost.files += costs.back().files;
    schedule.factored += costs.back().factored;
  }
  const auto peak_of = [&](int64_t first, int64_t last) {
    int64_t moments = 0, weights = 0, running = 0, arrived = 0, behind = 0;
    for (int64_t stage = first; stage < last; ++stage) {
      const auto& cost = costs[static_cast<size_t>(stage)];
      moments += cost.moments;
      weights += cost.weights;
      running = std::max(running, cost.rows);
      behind = std::max(behind, arrived + cost.maps + cost.solving);
      arrived += cost.arrived;
      behind = std::max(behind, arrived + cost.maps + cost.carrying);
    }
    if (input.gpu) {  // rows also as float64, some at a time
      return kProcessOnGpu + estimator.outer_weights() + 3 * moments + weights + running +
             std::min(2 * running, kConverted) + behind;
    }
    return kProcess + estimator.outer_weights() + moments + std::max(weights + running, behind);
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
      bytes_text(largest + batch_states), ", and --memory allows ", bytes_text(memory),
      "; a smaller --batch-size needs less");
  schedule.cost.states = all_states;
  schedule.kept = static_cast<int64_t>(input.kept.size());
  schedule.summed = static_cast<int64_t>(input.observed.size()) - schedule.kept;
  schedule.spill = largest + all_states > memory;
  if (!schedule.spill) {
    schedule.cost.peak = largest + all_states;
    int64_t blocks = 0;  // in the last group; what comes before the blocks has next to no maps
    for (const auto& [first, last] : units) {
      const bool more = input.processes > 1 ? blocks < input.processes : input.gpu && blocks == 0;
      const bool room = more && first > 0;
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
    schedule.cost.saved = saved_bytes(costs, schedule);
    return schedule;
  }
  schedule.cost.states = estimator.state_bytes(input.sequences);
  for (const auto& [first, last] : units) {
    if (!schedule.groups.empty() &&
        peak_of(schedule.groups.back().first, last) + batch_states <= memory) {
      schedule.groups.back().second = last;
    } else {
      schedule.groups.emplace_back(first, last);
    }
  }
  for (const auto& [first, last] : schedule.groups) {
    schedule.cost.peak = std::max(schedule.cost.peak, peak_of(first, last) + batch_states);
  }
  schedule.cost.saved = saved_bytes(costs, schedule);
  return schedule;
}

}  // namespace theseus::transport
