// Maps from the weights alone.

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {
namespace {

// The parameter with the space's axis in front: [width, rest].
at::Tensor unfolded(const at::Tensor& value, const model::Parameter& parameter, int64_t axis) {
  const auto part = parameter.fused() ? value.narrow(0, parameter.row, parameter.shape[0]) : value;
  return part.to(at::kDouble).movedim(axis, 0).reshape({parameter.shape[axis], -1});
}

}  // namespace

// Sums over the parameters of the stage that touch the space, or one with the same units.
maps::Problem Solver::from_weights(
    const std::string& space, int64_t stage, const MapSet& known) const {
  const auto& spaces = target_.architecture().spaces;
  const auto& behind = spaces.at(space).behind;
  auto root = behind.empty() ? space : behind;
  for (const auto& norm : target_.architecture().norms) {
    root = norm.in == space ? norm.out : root;  // a norm keeps its units
  }
  const auto same_units = [&](const std::string& other) {
    const auto found = spaces.find(other);
    return other == root || (found != spaces.end() && found->second.behind == root);
  };
  const auto block = target_block(stage);
  const auto* from = source_block(stage);
  const auto& source = source_.architecture();
  const auto& target = target_.architecture();
  maps::Problem problem;
  for (const auto& parameter : target.parameters) {
    const auto* other =
        parameter.block != block || parameter.role == model::Role::kTable
            ? nullptr
            : source.find_parameter(
                  target.role(parameter.name, block), from == nullptr ? block : from->run_as);
    if (other == nullptr) {
      continue;
    }
    const auto ours = target_.checkpoint().tensor(parameter.stored);
    const auto theirs = from == nullptr ? source_.checkpoint().tensor(other->stored)
                                        : stats::blended(source_, *from, other->tensor);
    for (size_t axis = 0; axis < parameter.axes.size(); ++axis) {
      if (!same_units(parameter.axes[axis])) {
        continue;
      }
      const auto r = unfolded(ours, parameter, static_cast<int64_t>(axis));
      auto s = unfolded(theirs, *other, static_cast<int64_t>(axis));
      if (parameter.axes.size() == 2) {
        const auto there = known.find(parameter.axes[1 - axis]);
        s = there == known.end() ? s : at::mm(s, there->second.dense().to(at::kDouble));
      }
      if (method_.needs.weight_cross) {
        require(
            s.sizes() == r.sizes(), "this method matches weights of equal shapes: ", parameter.name,
            " is ", at::IntArrayRef(parameter.shape), " in the target and ",
            at::IntArrayRef(other->shape), " in the source");
        accumulate(problem.cross, at::mm(s, r.t()));
      }
      if (method_.needs.weight_grams) {
        accumulate(problem.source_gram, at::mm(s, s.t()));
        accumulate(problem.target_gram, at::mm(r, r.t()));
      }
      problem.rows += r.size(1);
    }
  }
  return problem;
}

// Weights are matched along one axis given the match of the other: in turns, hidden units and heads
// first, until nothing moves.
MapSet Solver::solve_by_weights(int64_t stage, const SpaceSet& needed) const {
  constexpr int kMostTurns = 20;
  const auto& spaces = target_.architecture().spaces;
  std::vector<std::string> inner, outer;
  for (const auto& [name, space] : spaces) {
    const bool shared = std::any_of(spaces.begin(), spaces.end(), [&, n = name](const auto& other) {
      return other.second.behind == n;
    });
    if (belongs(name, stage)) {
      (shared || space.heads > 0 || !space.behind.empty() ? inner : outer).push_back(name);
    }
  }
  inner.insert(inner.end(), outer.begin(), outer.end());
  MapSet solved;
  // Whether the space's map is another one than before.
  const auto moves = [&](const std::string& space) {
    auto question = from_weights(space, stage, solved);
    if (!question.cross.defined()) {
      return false;  // no weight has this axis
    }
    add_sizes(space, stage, question);
    auto map = method_.solve(question, options_);
    const auto before = solved.find(space);
    const bool same = before != solved.end() && at::equal(before->second.matrix, map.matrix);
    solved[space] = std::move(map);
    return !same;
  };
  bool moved = true;
  for (int turn = 0; moved && turn < kMostTurns; ++turn) {
    moved = false;
    for (const auto& space : inner) {
      moved = with_context("aligning " + space, [&] { return moves(space); }) || moved;
    }
  }
  std::erase_if(solved, [&](const auto& item) { return !needed.contains(item.first); });
  return solved;
}

}  // namespace theseus::transport
