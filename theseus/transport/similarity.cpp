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
constexpr uint64_t kSketchSeed = 0x7e5e05;

// [d, k] with independent entries; undefined when the stream is narrow enough as it is.
at::Tensor sketch(int64_t width, int64_t blocks, uint64_t seed, c10::Device device) {
  const auto k = std::max<int64_t>(kMostColumns / blocks, 16);
  if (k >= width) {
    return {};
  }
  auto generator = at::detail::createCPUGenerator(kSketchSeed + seed);
  return (at::randn({width, k}, generator, at::kFloat) / std::sqrt(static_cast<double>(k)))
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

int64_t grid_of(const model::Tower& tower) {
  return tower.image > 0 ? tower.image / tower.patch : 0;
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
    const auto& matcher = *matchers.at(tower.name);
    Sums sums;
    for (int64_t batch = 0; batch < calibration.batches(); ++batch, watch(++done, all)) {
      if (tower.blocks == other.blocks) {
        continue;  // goes block by block whatever the similarity
      }
      at::Tensor source_kept, target_kept;
      const auto blocks = tower.blocks + other.blocks;
      const auto on = source.weights().placement().device;
      // Matching rows is linear, so it may come after the sketches: two, side by side.
      const auto both = [&](int64_t width, uint64_t seed) {
        const auto first = sketch(width, blocks, seed, on);
        return first.defined() ? at::cat({first, sketch(width, blocks, seed + 1, on)}, 1) : first;
      };
      const auto s = outputs_of_blocks(
          source, calibration.source(batch), tower.name, both(tower.width, 0), source_kept);
      const auto r = outputs_of_blocks(
          target, calibration.target(batch), tower.name, both(other.width, 2), target_kept);
      if (s.empty() || r.empty()) {
        continue;
      }
      const auto paired = [&](const at::Tensor& left, const at::Tensor& right) {
        return matcher.match(
            {.rows = left, .kept = source_kept, .grid = grid_of(tower)},
            {.rows = right, .kept = target_kept, .grid = grid_of(other)});
      };
      // The first and the second sketch of all blocks; the same where there is none.
      const auto sides = [](const std::vector<at::Tensor>& rows, int64_t width) {
        std::vector<at::Tensor> first, second;
        for (const auto& block : rows) {
          const bool sketched = block.size(1) != width;
          first.push_back(sketched ? block.chunk(2, 1)[0] : block);
          second.push_back(sketched ? block.chunk(2, 1)[1] : block);
        }
        return std::pair(at::cat(first, 1), at::cat(second, 1));
      };
      std::vector<at::Tensor> left, right;
      for (const auto& rows : s) {
        left.push_back(paired(rows, r[0]).source);
      }
      for (const auto& rows : r) {
        right.push_back(paired(s[0], rows).target);
      }
      const auto [left_first, left_second] = sides(left, tower.width);
      const auto [right_first, right_second] = sides(right, other.width);
      sums.cross.add(left_first, right_first);
      sums.source.add(left_first, left_second);
      sums.target.add(right_first, right_second);
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
