#include "theseus/transport/solve.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/side_by_side.h"

namespace theseus::transport {

Solver::Solver(
    const model::Model& source,
    const model::Model& target,
    const stats::Route& route,
    const maps::Method& method,
    const maps::Options& options)
    : source_(source), target_(target), route_(route), method_(method), options_(options) {
  for (const auto& norm : target.architecture().norms) {
    seen_.insert({norm.in, norm.out});
  }
  for (const auto& layer : target.architecture().linears) {
    seen_.insert(layer.in);
  }
}

void Solver::accumulate(at::Tensor& sum, const at::Tensor& term) {
  sum = sum.defined() ? sum + term : term;
}

int64_t Solver::target_block(int64_t stage) const {
  return stage == 0 || stage + 1 == stages() ? model::kOuter
                                             : route_.pairs[static_cast<size_t>(stage - 1)].target;
}

const stats::SourceBlock* Solver::source_block(int64_t stage) const {
  return stage == 0 || stage + 1 == stages()
             ? nullptr
             : &route_.source[static_cast<size_t>(
                   route_.pairs[static_cast<size_t>(stage - 1)].source)];
}

bool Solver::belongs(const std::string& space, int64_t stage) const {
  const auto block = target_block(stage);
  if (block == model::kOuter) {
    return stage != 0 && !model::is_in_block(space);
  }
  const auto [tower, first] = target_.architecture().tower_of(block);
  const auto& layers = target_.architecture().linears;
  return space.starts_with(c10::str(tower->name, ".", block - first, ".")) ||
         (!model::is_in_block(space) &&
          std::any_of(layers.begin(), layers.end(), [&](const auto& layer) {
            return layer.block == block &&
                   layer.in == space;  // a decoder's block reads the encoder
          }));
}

std::string Solver::find_behind(const std::string& space) const {
  const auto& behind = target_.architecture().spaces.at(space).behind;
  const auto there = [&](const model::Architecture& architecture) {
    const auto& spaces = architecture.spaces;
    return model::is_in_block(behind) || spaces.contains(behind);  // a pooler that no head reads
  };
  const auto& others = source_.architecture().spaces;
  const auto other = std::find_if(others.begin(), others.end(), [&](const auto& candidate) {
    return model::role_of(candidate.first) == model::role_of(space);
  });
  const bool alike = other != others.end() && other->second.behind.empty() == behind.empty();
  const bool used = method_.needs.moments && options_.rank == maps::Rank::kComplete &&
                    !behind.empty() && alike && there(source_.architecture()) &&
                    there(target_.architecture());
  return used ? behind : "";
}

std::string Solver::find_stream(const std::string& space) const {
  const bool added = model::is_in_block(space) && space.ends_with("_out") && !seen_.contains(space);
  if (!options_.stream || !method_.needs.moments || !added) {
    return "";
  }
  const auto block = space.substr(0, space.rfind('.'));
  // Where norms come behind the sums, that of the MLP has a stream of its own.
  const auto behind = block + ".block_out_raw";
  return space.ends_with(".mlp_out") && target_.architecture().spaces.contains(behind)
             ? behind
             : block + ".mlp_in_raw";
}

SpaceSet Solver::solved_for(const SpaceSet& needed) const {
  SpaceSet solved;
  for (const auto& space : needed) {
    const auto stream = find_stream(space);
    solved.insert(stream.empty() ? space : stream);
  }
  return solved;
}

std::string Solver::find_first(const std::string& space) const {
  const auto stream = find_stream(space);
  return stream.empty() ? find_behind(space) : stream;
}

std::vector<Solver::Writer> Solver::writers_of(const std::string& space, int64_t stage) const {
  const auto& from = source_.architecture();
  const auto& to = target_.architecture();
  const auto* block = source_block(stage);
  const auto source_index = block == nullptr ? model::kOuter : block->run_as;
  std::vector<Writer> writers;
  for (const auto& layer : to.linears) {
    const auto part = std::find(layer.out.begin(), layer.out.end(), space);
    if (part == layer.out.end() || layer.block != target_block(stage)) {
      continue;
    }
    const auto role = to.role(layer.module, layer.block);
    for (const auto& other : from.linears) {
      if (other.block == source_index && from.role(other.module, other.block) == role) {
        writers.push_back({&other, &layer, static_cast<size_t>(part - layer.out.begin())});
      }
    }
  }
  return writers;
}

SpaceSet Solver::observed_for(const SpaceSet& needed) const {
  SpaceSet observed;
  if (!method_.needs.moments) {
    return observed;
  }
  const auto want = [&](const std::string& space) {
    if (seen_.contains(space)) {
      observed.insert(space);
    }
    for (const auto& layer : target_.architecture().linears) {
      if (!seen_.contains(space) &&
          std::find(layer.out.begin(), layer.out.end(), space) != layer.out.end()) {
        observed.insert(layer.in);
      }
    }
  };
  for (const auto& space : solved_for(needed)) {
    want(space);
    if (const auto behind = find_behind(space); !behind.empty()) {
      want(behind);
    }
  }
  return observed;
}

SpaceSet Solver::graded_for(const SpaceSet& needed) const {
  SpaceSet graded;
  for (const auto& layer : target_.architecture().linears) {
    for (const auto& space : layer.out) {
      if (method_.needs.gradients && needed.contains(space) && !seen_.contains(space)) {
        graded.insert(space);
      }
    }
  }
  return graded;
}

std::map<std::string, int64_t> Solver::columns_of(const SpaceSet& needed) const {
  const bool completed = method_.obeys.rank && options_.rank != maps::Rank::kTruncate;
  const auto graded = graded_for(needed);
  std::map<std::string, int64_t> columns;
  for (const auto& space : needed) {
    if (!graded.contains(space)) {  // those are made from sums
      // What fills in the rest has as many as what is known, and those of the space behind come on top.
      const int64_t priors = find_behind(space).empty() ? 1 : 2;
      columns[space] = completed ? 2 * priors : 1;
    }
  }
  return columns;
}

void Solver::use_gradients(std::map<int64_t, stats::Moments> gradients) {
  gradients_ = std::move(gradients);
}

const stats::PairMoments* Solver::find_gradients(const std::string& space, int64_t stage) const {
  const auto at = gradients_.find(stage);
  if (at == gradients_.end()) {
    return nullptr;
  }
  const auto found = at->second.find(space);
  return found == at->second.end() ? nullptr : &found->second;
}

maps::Map Solver::solve_by_gradients(
    const std::string& space,
    int64_t stage,
    const stats::PairMoments& gradients,
    const maps::Map* otherwise) const {
  // Gradients are float32 and often lie in few directions: products of what rounding leaves in the others
  // are some 1e-14 of the largest, more where the few are uneven.
  constexpr double kRounding = 1e-10;
  auto question = from_observed(gradients);
  question.noise = kRounding;
  question.rounding = {};
  add_sizes(space, stage, question);
  if (otherwise != nullptr) {
    const auto device = otherwise->device();  // gradients come from a file
    for (auto* tensor : {&question.cross, &question.source_gram, &question.target_gram}) {
      *tensor = tensor->defined() ? tensor->to(device) : *tensor;
    }
    question.prior = otherwise->dense().to(at::kDouble);
  }
  auto map = method_.solve(question, options_);
  map.by_gradients = true;
  return map;
}

const stats::PairMoments* Solver::find_moments(
    const std::string& space, const stats::Moments& moments) const {
  if (const auto found = moments.find(space); found != moments.end()) {
    return &found->second;
  }
  const auto found = outer_.find(space);
  return found == outer_.end() ? nullptr : &found->second;
}

std::string Solver::own_space(const std::string& space, int64_t stage) const {
  const auto* block = source_block(stage);
  return block == nullptr
             ? space
             : model::in_block(
                   space, block->run_as - source_.architecture().tower_of(block->run_as).second);
}

void Solver::add_sizes(const std::string& space, int64_t stage, maps::Problem& problem) const {
  const auto& there = source_.architecture().spaces.at(own_space(space, stage));
  const auto& here = target_.architecture().spaces.at(space);
  problem.source_width = there.width;
  problem.target_width = here.width;
  problem.source_heads = there.heads;
  problem.target_heads = here.heads;
  problem.rigid_heads = here.rigid_heads;
}

void Solver::remember_outer(const stats::Moments& moments) {
  for (const auto& [space, found] : moments) {
    if (!model::is_in_block(space)) {
      outer_[space] = found;
    }
  }
}

SpaceSet Solver::belonging(int64_t stage, const SpaceSet& needed) const {
  SpaceSet result;
  for (const auto& space : needed) {
    if (belongs(space, stage)) {
      result.insert(space);
    }
  }
  return result;
}

std::string Solver::find_root(const std::string& space) const {
  const auto first = find_first(space);
  return first.empty() ? space : find_root(first);
}

double Solver::cost(const std::string& space, int64_t stage) const {
  const auto& spaces = source_.architecture().spaces;
  const auto there = spaces.find(own_space(space, stage));
  const auto dt = static_cast<double>(target_.architecture().spaces.at(space).width);
  const auto ds = there == spaces.end() ? dt : static_cast<double>(there->second.width);
  return std::min(ds, dt) * ds * dt;
}

std::vector<std::string> Solver::in_turn(const SpaceSet& spaces, int64_t stage) const {
  auto open = spaces;
  for (const auto& space : spaces) {
    if (const auto first = find_first(space); !first.empty()) {
      open.insert(first);
    }
  }
  std::vector<std::string> order;
  while (!open.empty()) {
    std::vector<std::string> next;
    std::copy_if(open.begin(), open.end(), std::back_inserter(next), [&](const auto& space) {
      return !open.contains(find_first(space));
    });
    std::stable_sort(next.begin(), next.end(), [&](const auto& left, const auto& right) {
      return cost(left, stage) > cost(right, stage);
    });
    for (const auto& space : next) {
      order.push_back(space);
      open.erase(space);
    }
  }
  return order;
}

std::optional<maps::Map> Solver::find_map(
    const std::string& space,
    int64_t stage,
    const stats::Moments& moments,
    const std::map<std::string, Future>& found) const {
  if (const auto stream = find_stream(space); !stream.empty()) {
    return found.at(stream).get();
  }
  const auto* gradients = find_gradients(space, stage);
  if (gradients != nullptr && options_.rank != maps::Rank::kComplete) {
    return solve_by_gradients(space, stage, *gradients, nullptr);
  }
  auto question = problem(space, stage, moments);
  if (method_.needs.moments && !question.cross.defined()) {
    return std::nullopt;
  }
  if (const auto behind = found.find(find_behind(space)); behind != found.end()) {
    const auto& prior = behind->second.get();
    if (prior && prior->factors.defined()) {
      question.prior_factors = prior->factors;
    } else if (prior) {
      question.prior = prior->matrix;
    }
  }
  auto map = method_.solve(question, options_);
  return gradients == nullptr ? map : solve_by_gradients(space, stage, *gradients, &map);
}

MapSet Solver::solve(int64_t stage, const stats::Moments& moments, const SpaceSet& needed) {
  remember_outer(moments);
  if (method_.needs.weight_cross) {
    return solve_by_weights(stage, needed);
  }
  const auto mine = belonging(stage, needed);
  const auto device = target_.weights().placement().device;
  std::map<std::string, Future> found;
  std::vector<std::function<void()>> tasks;
  for (const auto& space : in_turn(mine, stage)) {
    const auto task = std::make_shared<std::packaged_task<std::optional<maps::Map>()>>([&, space] {
      return with_context("aligning " + space, [&] {
        auto map = find_map(space, stage, moments, found);
        finish_queued(device);  // another thread may wait for it
        return map;
      });
    });
    const auto future = task->get_future().share();
    found[space] = future;
    tasks.push_back([task, future] {
      (*task)();
      future.get();  // throws what it threw
    });
  }
  run_side_by_side(device, tasks);
  MapSet solved;
  for (const auto& space : mine) {
    if (const auto& map = found.at(space).get()) {
      solved[space] = *map;
    }
  }
  return solved;
}

}  // namespace theseus::transport
