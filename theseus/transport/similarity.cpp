#include "theseus/transport/similarity.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace theseus::transport {
namespace {

// Columns of both models' blocks together: the products of one with the other take at most 128 MB.
constexpr int64_t kMostColumns = 8000;
constexpr uint64_t kSourceSeed = 0x7e5e05, kTargetSeed = 0x7e5e06;

int64_t columns_of_block(int64_t blocks) {
  return std::max<int64_t>(kMostColumns / blocks, 16);
}

// Two independent projections side by side [d, 2 k], or undefined when the stream is narrow enough as
// it is.
at::Tensor two_sketches(int64_t width, int64_t blocks, uint64_t seed, c10::Device device) {
  const auto k = columns_of_block(blocks);
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
        const auto stream = pass.streams.at(tower).to(at::kFloat);
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

// Centred second moments, in float64 however large: with a mean far from zero they are small differences
// of large numbers.
class Covariance {
 public:
  void add(const at::Tensor& left, const at::Tensor& right) {
    constexpr int64_t kRowsAtATime = 1024;  // a float64 copy of them all would be large
    for (int64_t row = 0; row < left.size(0); row += kRowsAtATime) {
      const auto count = std::min(kRowsAtATime, left.size(0) - row);
      add_some(left.narrow(0, row, count), right.narrow(0, row, count));
    }
  }

  // Becomes that of all processes' rows: with means m_i over n_i rows, and m over all of them,
  //   C = sum C_i + n_i (m_i - m) (m'_i - m')^T,  so nothing large is subtracted here either.
  void add_up(const cluster::Processes& processes) {
    std::istringstream widths(
        processes.from_first(rows_ == 0 ? "0 0" : c10::str(cross_.size(0), " ", cross_.size(1))));
    int64_t width = 0, other_width = 0;  // of the first process, which has the first batch
    widths >> width >> other_width;
    auto all = at::tensor(rows_, at::kLong);
    processes.sum(all);
    if (width == 0) {
      return;  // nobody has any
    }
    if (rows_ == 0) {
      left_ = left_shift_ = at::zeros({width}, at::kDouble);
      right_ = right_shift_ = at::zeros({other_width}, at::kDouble);
      cross_ = at::zeros({width, other_width}, at::kDouble);
    }
    const auto all_rows = all.item<int64_t>();
    const auto n = static_cast<double>(rows_), one = std::max(1.0, n);
    const auto ml = left_shift_ + left_ / one, mr = right_shift_ + right_ / one;
    auto l = n * ml, r = n * mr;
    processes.sum(l);
    processes.sum(r);
    l = l.to(ml.device()) / static_cast<double>(all_rows);
    r = r.to(mr.device()) / static_cast<double>(all_rows);
    cross_ = cross_ - at::outer(left_, right_ / one) + n * at::outer(ml - l, mr - r);
    processes.sum(cross_);
    left_shift_ = l;
    right_shift_ = r;
    left_ = at::zeros_like(l);
    right_ = at::zeros_like(r);
    rows_ = all_rows;
  }

  int64_t rows() const { return rows_; }
  // Sums of squares by block [from, to], where each side holds so many blocks of equal width.
  at::Tensor squares(int64_t from, int64_t to) const {
    const auto c = cross_ - at::outer(left_, right_ / static_cast<double>(rows_));
    return c.view({from, c.size(0) / from, to, c.size(1) / to}).square().sum({1, 3});
  }

 private:
  void add_some(const at::Tensor& left, const at::Tensor& right) {
    const auto l = left.to(at::kDouble), r = right.to(at::kDouble);  // [n, dl], [n, dr]
    if (rows_ == 0) {
      left_shift_ = l.mean(0);
      right_shift_ = r.mean(0);
      left_ = at::zeros_like(left_shift_);
      right_ = at::zeros_like(right_shift_);
      cross_ = at::zeros({l.size(1), r.size(1)}, l.options());
    }
    const auto ls = l - left_shift_, rs = r - right_shift_;
    left_ += ls.sum(0);
    right_ += rs.sum(0);
    cross_.addmm_(ls.t(), rs);
    rows_ += l.size(0);
  }

  int64_t rows_ = 0;
  at::Tensor left_shift_, right_shift_;  // means of the first rows
  at::Tensor left_, right_;              // sums about them
  at::Tensor cross_;                     // [dl, dr] about them
};

// A sketch leaves |P^T A Q|_F unbiased only when P and Q are independent, so a model's own moments are
// those of two sketches of it, block by block.
struct Sums {
  Covariance cross;  // all blocks side by side
  std::vector<Covariance> source, target;
};

// `from` and `to`: how many blocks there are.
void add_up(const cluster::Processes& processes, int64_t from, int64_t to, Sums& sums) {
  if (processes.alone()) {
    return;
  }
  sums.source.resize(static_cast<size_t>(from));  // a process may have had no batch
  sums.target.resize(static_cast<size_t>(to));
  sums.cross.add_up(processes);
  for (auto* side : {&sums.source, &sums.target}) {
    for (auto& block : *side) {
      block.add_up(processes);
    }
  }
}

at::Tensor cka(const Sums& sums) {
  const auto own = [](const std::vector<Covariance>& blocks) {
    std::vector<at::Tensor> squares;
    for (const auto& block : blocks) {
      squares.push_back(block.squares(1, 1).view({1}));
    }
    return at::cat(squares).sqrt();
  };
  const auto s = own(sums.source), r = own(sums.target);
  return sums.cross.squares(s.size(0), r.size(0)) / at::outer(s, r).clamp_min(1e-300);
}

// Adds each block's own moments, and returns all blocks' rows side by side: in the first sketch.
at::Tensor add_own(
    const std::vector<at::Tensor>& blocks, bool sketched, std::vector<Covariance>& sums) {
  sums.resize(blocks.size());
  std::vector<at::Tensor> first;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto halves = sketched ? blocks[i].chunk(2, 1) : std::vector{blocks[i], blocks[i]};
    sums[i].add(halves[0], halves[1]);
    first.push_back(halves[0]);
  }
  return at::cat(first, 1);
}

// One tower of both models, and the sketches of their streams.
struct TowerPair {
  model::Model& source;
  model::Model& target;
  const model::Tower& from;
  const model::Tower& to;
  const stats::Matcher& matcher;
  at::Tensor p, q;
};

void add_batch(const TowerPair& pair, const stats::PairedBatch& batch, Sums& sums) {
  at::Tensor source_kept, target_kept;
  const auto s = outputs_of_blocks(pair.source, batch.source, pair.from.name, pair.p, source_kept);
  const auto r = outputs_of_blocks(pair.target, batch.target, pair.to.name, pair.q, target_kept);
  if (s.empty() || r.empty()) {
    return;
  }
  const auto source_spans = stats::find_spans(batch.source_spans, batch.source, pair.from.name);
  const auto target_spans = stats::find_spans(batch.target_spans, batch.target, pair.to.name);
  // Matching rows is linear, so it may come after the sketches.
  const auto paired = [&](const at::Tensor& left, const at::Tensor& right) {
    return pair.matcher.match(
        {.rows = left, .kept = source_kept, .grid = pair.from.grid(), .spans = source_spans},
        {.rows = right, .kept = target_kept, .grid = pair.to.grid(), .spans = target_spans});
  };
  std::vector<at::Tensor> left, right;
  for (const auto& rows : s) {
    left.push_back(paired(rows, r[0]).source);
  }
  for (const auto& rows : r) {
    right.push_back(paired(s[0], rows).target);
  }
  sums.cross.add(
      add_own(left, pair.p.defined(), sums.source), add_own(right, pair.q.defined(), sums.target));
}

}  // namespace

bool is_estimated(const model::Architecture& source, const model::Architecture& target) {
  for (size_t t = 0; t < source.towers.size(); ++t) {
    const auto& from = source.towers[t];
    const auto& to = target.towers[t];
    if (from.blocks != to.blocks &&
        columns_of_block(from.blocks + to.blocks) < std::max(from.width, to.width)) {
      return true;
    }
  }
  return false;
}

at::Tensor block_similarity(
    model::Model& source,
    model::Model& target,
    const stats::Calibration& calibration,
    const std::map<std::string, const stats::Matcher*>& matchers,
    const std::function<void(int64_t done, int64_t all)>& watch,
    const cluster::Processes& processes) {
  const auto& from = source.architecture();
  const auto& to = target.architecture();
  auto result = at::zeros({from.blocks(), to.blocks()}, at::kDouble);
  int64_t first_source = 0, first_target = 0;
  int64_t done = 0;
  const auto all = calibration.batches() * static_cast<int64_t>(from.towers.size());
  for (size_t t = 0; t < from.towers.size(); ++t) {
    const auto& tower = from.towers[t];
    const auto& other = to.towers[t];
    const auto blocks = tower.blocks + other.blocks;
    const auto device = source.weights().placement().device;
    const TowerPair pair{
        source,
        target,
        tower,
        other,
        *matchers.at(tower.name),
        two_sketches(tower.width, blocks, kSourceSeed, device),
        two_sketches(other.width, blocks, kTargetSeed, device)};
    Sums sums;
    for (int64_t batch = 0; batch < calibration.batches(); ++batch, watch(++done, all)) {
      const bool mine = batch % processes.size() == processes.rank();
      if (tower.blocks != other.blocks && mine) {  // else block by block, whatever the similarity
        add_batch(pair, calibration.pair(batch), sums);
      }
    }
    add_up(processes, tower.blocks, other.blocks, sums);
    if (sums.cross.rows() > 0) {
      result.narrow(0, first_source, tower.blocks)
          .narrow(1, first_target, other.blocks)
          .copy_(cka(sums).to(at::kCPU));
    }
    first_source += tower.blocks;
    first_target += other.blocks;
  }
  return result;
}

}  // namespace theseus::transport
