#include "theseus/transport/depth.h"

#include <algorithm>
#include <limits>
#include <map>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/machine/suggest.h"

namespace theseus::transport {
namespace {

// Evenly: block i of `blocks` is followed by so many of `extra` new ones.
int64_t inserted_after(int64_t i, int64_t blocks, int64_t extra) {
  return (i + 1) * extra / blocks - i * extra / blocks;
}

void stretch(const model::Tower& tower, int64_t first, int64_t to, stats::Route& route) {
  for (int64_t i = 0; i < tower.blocks; ++i) {
    const auto block = first + i;
    route.source.push_back({.run_as = block, .parts = {{block, 1.0}}});
    const auto count = inserted_after(i, tower.blocks, to - tower.blocks);
    for (int64_t k = 1; k <= count; ++k) {
      const double share = static_cast<double>(k) / static_cast<double>(count + 1);
      if (i + 1 == tower.blocks) {
        route.source.push_back({.run_as = block, .parts = {{block, 1.0}}});
      } else {
        route.source.push_back(
            {.run_as = block, .parts = {{block, 1 - share}, {block + 1, share}}});
      }
    }
  }
}

// similarity [source blocks, target blocks] of one tower.
void match(
    const at::Tensor& similarity,
    int64_t first_source,
    int64_t first_target,
    bool shared,
    stats::Route& route) {
  const bool deeper = similarity.size(1) > similarity.size(0);
  const auto assigned = monotone_assignment(deeper ? similarity.t() : similarity);
  for (size_t i = 0; i < assigned.size(); ++i) {
    const auto own = static_cast<int64_t>(i);
    const auto served = std::count(assigned.begin(), assigned.end(), assigned[i]);
    const auto source = deeper ? assigned[i] : own;
    const auto target = deeper ? own : assigned[i];
    route.pairs.push_back(
        {.source = first_source + source,
         .target = first_target + target,
         .share = deeper && shared ? 1.0 / static_cast<double>(served) : 1.0});
  }
}

const std::map<std::string, Depth>& depth_words() {
  static const std::map<std::string, Depth> words = {
      {"divided", Depth::kDivided}, {"whole", Depth::kWhole}, {"stretch", Depth::kStretch}};
  return words;
}

}  // namespace

std::string word_of(Depth depth) {
  for (const auto& [word, meant] : depth_words()) {
    if (meant == depth) {
      return word;
    }
  }
  throw InternalError("a depth rule without a word");
}

Depth parse_depth(const std::string& word) {
  const auto found = depth_words().find(word);
  constexpr const char* kKnown = "divided whole stretch";
  require(
      found != depth_words().end(), "--depth: '", word, "' is none of: ", kKnown,
      machine::did_you_mean(word, kKnown));
  return found->second;
}

bool depths_differ(const model::Architecture& source, const model::Architecture& target) {
  for (size_t i = 0; i < source.towers.size(); ++i) {
    if (source.towers[i].blocks != target.towers[i].blocks) {
      return true;
    }
  }
  return false;
}

void require_fits(
    const stats::Route& route,
    const model::Architecture& source,
    const model::Architecture& target) {
  const auto is_one_of = [](int64_t block, int64_t blocks) { return block >= 0 && block < blocks; };
  bool fits = true;
  for (const auto& block : route.source) {
    fits = fits && is_one_of(block.run_as, source.blocks()) && !block.parts.empty();
    for (const auto& [part, share] : block.parts) {
      fits = fits && is_one_of(part, source.blocks());
    }
  }
  std::vector<bool> served(static_cast<size_t>(target.blocks()), false);
  for (const auto& pair : route.pairs) {
    fits = fits && is_one_of(pair.source, static_cast<int64_t>(route.source.size())) &&
           is_one_of(pair.target, target.blocks());
    if (fits) {
      served[static_cast<size_t>(pair.target)] = true;
    }
  }
  fits = fits && std::all_of(served.begin(), served.end(), [](bool is) { return is; });
  require(fits, "the correspondence of blocks does not fit these models");
}

std::vector<int64_t> monotone_assignment(const at::Tensor& similarity) {
  const auto scores = similarity.to(at::kCPU, at::kDouble).contiguous();
  const auto deep = scores.size(0), shallow = scores.size(1);
  const auto score = scores.accessor<double, 2>();
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const auto row = std::vector<double>(static_cast<size_t>(shallow), kNever);
  std::vector<std::vector<double>> best(static_cast<size_t>(deep), row);
  const auto at = [&](int64_t i, int64_t j) -> double& {
    return best[static_cast<size_t>(i)][static_cast<size_t>(j)];
  };
  at(0, 0) = score[0][0];
  for (int64_t i = 1; i < deep; ++i) {
    for (int64_t j = 0; j < shallow; ++j) {
      const double step = j == 0 ? kNever : at(i - 1, j - 1);
      at(i, j) = std::max(at(i - 1, j), step) + score[i][j];
    }
  }
  std::vector<int64_t> assigned(static_cast<size_t>(deep));
  for (int64_t i = deep - 1, j = shallow - 1; i >= 0; --i) {
    assigned[static_cast<size_t>(i)] = j;
    if (i > 0 && j > 0 && at(i - 1, j - 1) >= at(i - 1, j)) {
      --j;
    }
  }
  return assigned;
}

stats::Route make_route(
    const model::Architecture& source,
    const model::Architecture& target,
    Depth depth,
    const at::Tensor& similarity) {
  stats::Route route;
  int64_t first_source = 0, first_target = 0;
  for (size_t t = 0; t < source.towers.size(); ++t) {
    const auto& from = source.towers[t];
    const auto& to = target.towers[t];
    const auto begin = static_cast<int64_t>(route.source.size());
    const bool matched = from.blocks != to.blocks && depth != Depth::kStretch;
    if (matched) {
      stretch(from, first_source, from.blocks, route);
      match(
          similarity.narrow(0, first_source, from.blocks).narrow(1, first_target, to.blocks), begin,
          first_target, depth == Depth::kDivided, route);
    } else {
      require(
          from.blocks <= to.blocks, "--depth stretch needs a target at least as deep: the ",
          from.name, " tower has ", from.blocks, " blocks in the source and ", to.blocks,
          " in the target; use --depth divided");
      stretch(from, first_source, to.blocks, route);
      for (int64_t i = 0; i < to.blocks; ++i) {
        route.pairs.push_back({.source = begin + i, .target = first_target + i});
      }
    }
    first_source += from.blocks;
    first_target += to.blocks;
  }
  return route;
}

}  // namespace theseus::transport
