#include "theseus/transport/similarity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/stats/moments.h"

namespace theseus::transport {
namespace {

// Columns of both models' blocks together: their moments take at most half a gigabyte.
constexpr int64_t kMostColumns = 8000;
constexpr uint64_t kSourceSeed = 0x7e5e05, kTargetSeed = 0x7e5e06;

// Two independent projections side by side [d, 2 k], or undefined when the stream is narrow enough as
// it is.
at::Tensor two_sketches(int64_t width, int64_t blocks, uint64_t seed, c10::Device device) {
  const auto k = std::max<int64_t>(kMostColumns / blocks, 16);
  if (k >= width) {
    return {};
  }
  auto generator = at::detail::createCPUGenerator(seed);
  return (at::randn({width, 2 * k}, generator, at::kFloat) / std::sqrt(static_cast<double>(k)))
      .to(device);
}

// The stream of `tower` after each of its blocks, through `sketch` if that is defined: [n, t, k] each.
std::vector<at::Tensor> outputs_of_blocks(
    model::Model& model,
    const model::Batch& batch,
    const std::string& tower,
    const at::Tensor& sketch,
    at::Tensor& kept) {
  auto pass = model.begin(batch);
  model.network().enter(pass);
  std::vector<at::Tensor> outputs;
  int64_t block = 0;
  for (const auto& candidate : model.architecture().towers) {
    for (int64_t i = 0; i < candidate.blocks; ++i, ++block) {
      model.run_block(block, pass);
      model.weights().drop_block(block);
      if (candidate.name == tower && pass.streams.contains(tower)) {
        const auto& stream = pass.streams.at(tower);
        outputs.push_back(sketch.defined() ? at::matmul(stream, sketch) : stream);
      }
    }
    if (candidate.name == tower) {
      break;
    }
  }
  const auto found = pass.kept.find(tower);
  kept = found == pass.kept.end() ? at::Tensor() : found->second;
  return outputs;
}

// Moments of all blocks side by side. A sketch leaves |P^T A Q|_F unbiased only when P and Q are
// independent, so a model's own moments are those of two sketches of it.
struct Sums {
  stats::PairMoments cross, source, target;
};

at::Tensor cka(const Sums& sums, int64_t from_blocks, int64_t to_blocks) {
  const auto squares = [](const stats::PairMoments& moments, int64_t rows, int64_t columns) {
    const auto c = moments.centred().cross;
    return c.view({rows, c.size(0) / rows, columns, c.size(1) / columns}).square().sum({1, 3});
  };
  const auto s = squares(sums.source, from_blocks, from_blocks).diagonal().sqrt();
  const auto r = squares(sums.target, to_blocks, to_blocks).diagonal().sqrt();
  return squares(sums.cross, from_blocks, to_blocks) / at::outer(s, r).clamp_min(1e-300);
}

// All blocks' rows side by side: in the first sketch and in the second, or twice the same.
std::pair<at::Tensor, at::Tensor> sides(const std::vector<at::Tensor>& blocks, bool sketched) {
  if (!sketched) {
    const auto rows = at::cat(blocks, 1);
    return {rows, rows};
  }
  std::vector<at::Tensor> first, second;
  for (const auto& block : blocks) {
    const auto halves = block.chunk(2, 1);
    first.push_back(halves[0]);
    second.push_back(halves[1]);
  }
  return {at::cat(first, 1), at::cat(second, 1)};
}

// One tower of both models.
struct TowerPair {
  model::Model& source;
  model::Model& target;
  const model::Tower& from;
  const model::Tower& to;
  const stats::Matcher& matcher;
};

void add_batch(
    const TowerPair& pair,
    const model::Batch& source_batch,
    const model::Batch& target_batch,
    Sums& sums) {
  const auto blocks = pair.from.blocks + pair.to.blocks;
  const auto device = pair.source.weights().placement().device;
  const auto p = two_sketches(pair.from.width, blocks, kSourceSeed, device);
  const auto q = two_sketches(pair.to.width, blocks, kTargetSeed, device);
  at::Tensor source_kept, target_kept;
  const auto s = outputs_of_blocks(pair.source, source_batch, pair.from.name, p, source_kept);
  const auto r = outputs_of_blocks(pair.target, target_batch, pair.to.name, q, target_kept);
  if (s.empty() || r.empty()) {
    return;
  }
  // Matching rows is linear, so it may come after the sketches.
  const auto paired = [&](const at::Tensor& left, const at::Tensor& right) {
    return pair.matcher.match(
        {.rows = left, .kept = source_kept, .grid = pair.from.grid()},
        {.rows = right, .kept = target_kept, .grid = pair.to.grid()});
  };
  std::vector<at::Tensor> left, right;
  for (const auto& rows : s) {
    left.push_back(paired(rows, r[0]).source);
  }
  for (const auto& rows : r) {
    right.push_back(paired(s[0], rows).target);
  }
  const auto source = sides(left, p.defined());
  const auto target = sides(right, q.defined());
  sums.cross.add(source.first, target.first);
  sums.source.add(source.first, source.second);
  sums.target.add(target.first, target.second);
}

}  // namespace

at::Tensor block_similarity(
    model::Model& source,
    model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers,
    const std::function<void(int64_t done, int64_t all)>& watch) {
  const auto& from = source.architecture();
  const auto& to = target.architecture();
  auto result = at::zeros({from.blocks(), to.blocks()}, at::kDouble);
  int64_t first_source = 0, first_target = 0;
  int64_t done = 0;
  const auto all = calibration.batches() * static_cast<int64_t>(from.towers.size());
  for (size_t t = 0; t < from.towers.size(); ++t) {
    const auto& tower = from.towers[t];
    const auto& other = to.towers[t];
    const TowerPair pair{source, target, tower, other, *matchers.at(tower.name)};
    Sums sums;
    for (int64_t batch = 0; batch < calibration.batches(); ++batch, watch(++done, all)) {
      if (tower.blocks != other.blocks) {  // else block by block, whatever the similarity
        add_batch(pair, calibration.source(batch), calibration.target(batch), sums);
      }
    }
    if (sums.cross.rows > 0) {
      result.narrow(0, first_source, tower.blocks)
          .narrow(1, first_target, other.blocks)
          .copy_(cka(sums, tower.blocks, other.blocks).to(at::kCPU));
    }
    first_source += tower.blocks;
    first_target += other.blocks;
  }
  return result;
}

}  // namespace theseus::transport
