#include "theseus/transport/similarity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

#include "theseus/stats/moments.h"

namespace theseus::transport {
namespace {

constexpr int64_t kWidest = 256;
constexpr int64_t kMostColumns = 2048;  // of all blocks together
constexpr uint64_t kSketchSeed = 0x7e5e05;

// [d, k] with E |x P|^2 = |x|^2; undefined when the stream is narrow enough.
at::Tensor sketch(int64_t width, int64_t blocks, c10::Device device) {
  const auto k = std::min({width, kWidest, std::max<int64_t>(kMostColumns / blocks, 16)});
  if (k == width) {
    return {};
  }
  auto generator = at::detail::createCPUGenerator(kSketchSeed);
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

at::Tensor cka(const stats::PairMoments& moments, int64_t from_blocks, int64_t to_blocks) {
  const auto m = moments.centred();
  const auto ks = m.cross.size(0) / from_blocks, kt = m.cross.size(1) / to_blocks;
  const auto blocks = m.cross.view({from_blocks, ks, to_blocks, kt}).square().sum({1, 3});
  const auto own = [](const at::Tensor& gram, int64_t count, int64_t k) {
    const auto squares = gram.view({count, k, count, k}).square().sum({1, 3});
    return squares.diagonal().sqrt();
  };
  const auto s = own(m.source_gram, from_blocks, ks), r = own(m.target_gram, to_blocks, kt);
  return blocks / at::outer(s, r).clamp_min(1e-300);
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
    stats::PairMoments moments;
    for (int64_t batch = 0; batch < calibration.batches(); ++batch, watch(++done, all)) {
      if (tower.blocks == other.blocks) {
        continue;  // goes block by block whatever the similarity
      }
      at::Tensor source_kept, target_kept;
      // Matching rows is linear, so it may come after the sketch.
      const auto p = sketch(tower.width, tower.blocks, source.weights().placement().device);
      const auto q = sketch(other.width, other.blocks, target.weights().placement().device);
      const auto s =
          outputs_of_blocks(source, calibration.source(batch), tower.name, p, source_kept);
      const auto r =
          outputs_of_blocks(target, calibration.target(batch), tower.name, q, target_kept);
      if (s.empty() || r.empty()) {
        continue;
      }
      const auto paired = [&](const at::Tensor& left, const at::Tensor& right) {
        return matcher.match(
            {.rows = left, .kept = source_kept, .grid = grid_of(tower)},
            {.rows = right, .kept = target_kept, .grid = grid_of(other)});
      };
      std::vector<at::Tensor> left, right;
      for (const auto& rows : s) {
        left.push_back(paired(rows, r[0]).source);
      }
      for (const auto& rows : r) {
        right.push_back(paired(s[0], rows).target);
      }
      moments.add(at::cat(left, 1), at::cat(right, 1), {.source = true, .target = true});
    }
    if (moments.rows > 0) {
      result.narrow(0, first_source, tower.blocks)
          .narrow(1, first_target, other.blocks)
          .copy_(cka(moments, tower.blocks, other.blocks).to(at::kCPU));
    }
    first_source += tower.blocks;
    first_target += other.blocks;
  }
  return result;
}

}  // namespace theseus::transport
