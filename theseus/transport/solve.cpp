#include "theseus/transport/solve.h"

#include <algorithm>
#include <atomic>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/maps/certify.h"

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
  for (const auto& space : needed) {
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
  const auto behind = find_behind(space);
  return behind.empty() ? space : find_root(behind);
}

double Solver::cost(const std::string& space, int64_t stage) const {
  const auto& spaces = source_.architecture().spaces;
  const auto there = spaces.find(own_space(space, stage));
  const auto dt = static_cast<double>(target_.architecture().spaces.at(space).width);
  const auto ds = there == spaces.end() ? dt : static_cast<double>(there->second.width);
  return std::min(ds, dt) * ds * dt;
}

bool Solver::is_quick(const maps::Problem& question) const {
  return question.cross.defined() && question.cross.device().is_cpu() && !question.factored &&
         std::max(question.source_width, question.target_width) <= maps::kSmall;
}

void Solver::solve_together(
    const std::map<std::string, maps::Problem>& questions, MapSet& solved) const {
  constexpr int64_t kWorkers = 4;  // each takes some tens of megabytes
  std::vector<std::pair<const std::string*, maps::Map>> answers;
  for (const auto& [space, question] : questions) {
    answers.push_back({&space, maps::Map()});
  }
  std::atomic<size_t> next = 0;
  const auto workers = std::min<int64_t>({kWorkers, at::get_num_threads(), std::ssize(answers)});
  at::parallel_for(0, workers, 1, [&](int64_t first, int64_t last) {
    for (auto i = next++; first < last && i < answers.size(); i = next++) {
      auto& [space, map] = answers[i];
      with_context("aligning " + *space, [&, name = space, found = &map] {
        *found = method_.solve(questions.at(*name), options_);
      });
    }
  });
  for (auto& [space, map] : answers) {
    solved[*space] = std::move(map);
  }
}

MapSet Solver::solve(int64_t stage, const stats::Moments& moments, const SpaceSet& needed) {
  remember_outer(moments);
  if (method_.needs.weight_cross) {
    return solve_by_weights(stage, needed);
  }
  MapSet solved;
  std::map<std::string, maps::Problem> quick;  // nothing waits for them
  const auto solve_one = [&](const std::string& space, bool awaited) {
    if (solved.contains(space)) {
      return;
    }
    with_context("aligning " + space, [&] {
      const auto* gradients = find_gradients(space, stage);
      if (gradients != nullptr && options_.rank != maps::Rank::kComplete) {
        solved[space] = solve_by_gradients(space, stage, *gradients, nullptr);
        return;
      }
      auto question = problem(space, stage, moments);
      if (method_.needs.moments && !question.cross.defined()) {
        return;  // not reached by the calibration
      }
      const auto prior = solved.find(find_behind(space));
      if (prior != solved.end() && prior->second.factors.defined()) {
        question.prior_factors = prior->second.factors;
      } else if (prior != solved.end()) {
        question.prior = prior->second.matrix;
      }
      if (!awaited && gradients == nullptr && prior == solved.end() && is_quick(question)) {
        quick[space] = std::move(question);
        return;
      }
      const auto map = method_.solve(question, options_);
      solved[space] =
          gradients == nullptr ? map : solve_by_gradients(space, stage, *gradients, &map);
    });
  };
  const auto mine = belonging(stage, needed);
  for (const auto& space : mine) {
    if (const auto behind = find_behind(space); !behind.empty()) {
      solve_one(behind, true);
    }
  }
  for (const auto& space : mine) {
    solve_one(space, false);
  }
  solve_together(quick, solved);
  std::erase_if(solved, [&](const auto& item) { return !mine.contains(item.first); });
  return solved;
}

}  // namespace theseus::transport
