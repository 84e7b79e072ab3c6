#include "theseus/transport/imitate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/units.h"
#include "theseus/model/replaced.h"
#include "theseus/stats/matcher.h"
#include "theseus/stats/moments.h"
#include "theseus/transport/compatible.h"
#include "theseus/transport/schedule.h"
#include "theseus/transport/writer_taps.h"

namespace theseus::transport {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
using Rows = std::map<std::string, WriterRows>;  // by role of the layer

// One model between two blocks, for one batch.
struct State {
  Tensors streams, kept;
};

// One batch in all four models, and what was seen last of the block at hand.
struct Walker {
  stats::PairedBatch batch;
  State source, tuned, target, updated;
  Rows source_rows, tuned_rows, target_rows;
};

// A source block's tensors as tuned, or those of no block.
Tensors tuned_tensors(const model::Model& source, const SourceUpdate& update, int64_t block) {
  return with_deltas(source, whole_deltas(update, source.architecture(), block));
}

State entered(model::Model& model, const model::Batch& batch) {
  auto pass = model.begin(batch);
  model.network().enter(pass);
  return {.streams = pass.streams, .kept = pass.kept};
}

Rows run_block(model::Model& model, const model::Batch& batch, int64_t block, State& state) {
  WriterTaps taps(model.architecture(), block);
  auto pass = model.begin(batch, &taps);
  pass.streams = std::move(state.streams);
  pass.kept = std::move(state.kept);
  model.run_block(block, pass);
  state = {.streams = pass.streams, .kept = pass.kept};
  const auto found = state.streams.find(model.architecture().tower_of(block).first->name);
  return found == state.streams.end() ? Rows() : taps.take(found->second);
}

// The class token of the last block as heavy as the patches together: all rows times the root of their
// weights. [1, t, 1]
at::Tensor roots_of_weights(
    const model::Architecture& model, int64_t block, const at::Tensor& rows) {
  const auto [tower, first] = model.tower_of(block);
  auto roots = at::ones({1, rows.size(1), 1}, rows.options());
  if (tower->grid() > 0 && block - first + 1 == tower->blocks) {
    roots.narrow(1, 0, 1).fill_(std::sqrt(static_cast<double>(rows.size(1) - 1)));
  }
  return roots;
}

at::Tensor with_one(const at::Tensor& rows) {
  return at::cat({rows, at::ones_like(rows.narrow(-1, 0, 1))}, -1);
}

// The A that minimises |X A - Y|^2 + penalty |A|^2 from X^T X and X^T Y; a last row that goes with a
// constant is free.
at::Tensor ridge(at::Tensor gram, const at::Tensor& cross, double penalty, bool constant) {
  auto added = at::full({gram.size(0)}, penalty, gram.options());
  if (constant) {
    added.narrow(0, gram.size(0) - 1, 1).zero_();
  }
  gram = gram + at::diag(added);
  const auto factor = std::get<0>(at::linalg_cholesky_ex(gram));
  require<NumericError>(
      at::isfinite(factor).all().item<bool>(),
      "what a layer reads has no second moments that can be inverted; use a larger ridge");
  return at::cholesky_solve(cross, factor);
}

// Numbers that one batch keeps of one model: the stream, and of a block what its writers read and leave.
double numbers_of(const model::Architecture& architecture, const State& state) {
  double numbers = 0;
  for (const auto& tower : architecture.towers) {
    const auto stream = state.streams.find(tower.name);
    if (stream != state.streams.end()) {
      const auto rows = stream->second.numel() / tower.width;
      numbers += static_cast<double>(rows) * static_cast<double>(4 * tower.width + tower.mlp);
    }
  }
  return numbers;
}

class Imitator {
 public:
  Imitator(
      model::Model& source,
      const SourceUpdate& update,
      model::Model& target,
      const std::vector<const stats::Calibration*>& calibrations,
      const ImitateOptions& options)
      : source_(source), update_(update), target_(target), options_(options) {
    require_one_family(source, target);
    require(!calibrations.empty(), "there are no examples to imitate on");
    matchers_ =
        matchers_of(target.architecture(), options.tokens, calibrations.front()->has_spans());
    const Tensors outer = tuned_tensors(source, update, model::kOuter);
    for (const auto* calibration : calibrations) {
      require_one_vocabulary(source, target, *calibration, matchers_);
      for (int64_t batch = 0; batch < calibration->batches(); ++batch) {
        Walker walker{.batch = calibration->pair(batch)};
        walker.source = entered(source, walker.batch.source);
        walker.target = walker.updated = entered(target, walker.batch.target);
        const model::Replaced as_tuned(source, outer);
        walker.tuned = entered(source, walker.batch.source);
        walkers_.push_back(std::move(walker));
        if (walkers_.size() == 1) {
          require_memory(calibrations);
        }
      }
    }
  }

  // Brings the source's two forms through one of its blocks.
  void pass_source(int64_t block) {
    const auto tuned = tuned_tensors(source_, update_, block);
    for (auto& walker : walkers_) {
      walker.source_rows = run_block(source_, walker.batch.source, block, walker.source);
      const model::Replaced as_tuned(source_, tuned);
      walker.tuned_rows = run_block(source_, walker.batch.source, block, walker.tuned);
    }
    source_.weights().drop_block(block);
    source_block_ = block;
  }

  void pass_target(int64_t block, Imitation& result) {
    for (auto& walker : walkers_) {
      walker.target_rows = run_block(target_, walker.batch.target, block, walker.target);
    }
    Tensors values;
    const bool known = block < result.blocks;
    for (const auto* writer : writers_in(target_.architecture(), block)) {
      if (known) {
        use_known(*writer, values, result);
        continue;
      }
      const auto role = target_.architecture().role(writer->module, block);
      const auto& seen = walkers_.front();
      if (seen.target_rows.contains(role) && seen.source_rows.contains(role)) {
        fit(*writer, role, values, result);
      }
    }
    const model::Replaced as_updated(target_, values);
    for (auto& walker : walkers_) {
      run_block(target_, walker.batch.target, block, walker.updated);
    }
    target_.weights().drop_block(block);
    result.blocks = std::max(result.blocks, block + 1);
  }

 private:
  void use_known(const model::Linear& layer, Tensors& values, Imitation& result) {
    for (const auto& tensor : {layer.weight, layer.bias}) {
      if (const auto delta = result.deltas.find(tensor); delta != result.deltas.end()) {
        values[tensor] = with_deltas(target_, {{tensor, delta->second}}).at(tensor);
      }
    }
  }

  // All batches are in memory at once, in both forms of both models.
  void require_memory(const std::vector<const stats::Calibration*>& calibrations) const {
    int64_t batches = 0;
    for (const auto* calibration : calibrations) {
      batches += calibration->batches();
    }
    const auto numbers = numbers_of(source_.architecture(), walkers_[0].source) +
                         numbers_of(target_.architecture(), walkers_[0].target);
    const auto bytes = static_cast<int64_t>(2 * sizeof(float) * numbers) * batches;
    const auto free = available_memory(source_.weights().placement().device);
    require(
        bytes <= free, "the hidden states of ", batches, " batches need ", bytes_text(bytes),
        " and ", bytes_text(free), " are free; give fewer --batches");
  }

  stats::PairedRows paired(
      const Walker& walker, int64_t block, const at::Tensor& left, const at::Tensor& right) const {
    const auto& to = *target_.architecture().tower_of(block).first;
    const auto& from = *source_.architecture().tower_of(source_block_).first;
    const auto kept = [](const State& state, const std::string& tower) {
      const auto found = state.kept.find(tower);
      return found == state.kept.end() ? at::Tensor() : found->second;
    };
    const auto& batch = walker.batch;
    return matchers_.at(to.name)->match(
        {.rows = left,
         .kept = kept(walker.source, from.name),
         .grid = from.grid(),
         .spans = stats::find_spans(batch.source_spans, batch.source, from.name)},
        {.rows = right,
         .kept = kept(walker.target, to.name),
         .grid = to.grid(),
         .spans = stats::find_spans(batch.target_spans, batch.target, to.name)});
  }

  // L [ds, dt] behind a layer.
  at::Tensor map_behind(const std::string& role, int64_t block) const {
    at::Tensor gram, cross;
    for (const auto& walker : walkers_) {
      const auto& s = walker.source_rows.at(role).after;
      const auto& r = walker.target_rows.at(role).after;
      const auto rows = paired(
          walker, block, with_one(s) * roots_of_weights(source_.architecture(), source_block_, s),
          r * roots_of_weights(target_.architecture(), block, r));
      const auto own = stats::product_of_rows(rows.source, rows.source);
      const auto both = stats::product_of_rows(rows.source, rows.target);
      gram = gram.defined() ? gram + own : own;
      cross = cross.defined() ? cross + both : both;
    }
    const auto width = gram.size(0) - 1;
    const auto sums = gram.select(1, width).narrow(0, 0, width);
    const auto variance = gram.diagonal().narrow(0, 0, width) - sums.square() / gram[width][width];
    const auto penalty = options_.map_ridge * variance.mean().item<double>();
    return ridge(gram, cross, penalty, /*constant=*/true).narrow(0, 0, width);
  }

  struct Fit {
    at::Tensor gram, cross;         // of [x, 1] with itself and with what is missing of the stream
    double wanted = 0, stream = 0;  // squares
    double missing = 0;             // square of what is missing
  };

  // Sums for a layer, with the target's block as `values` leave it.
  Fit sums_of(
      const model::Linear& layer,
      const std::string& role,
      const at::Tensor& map,
      const Tensors& values) {
    Fit fit;
    const model::Replaced as_updated(target_, values);
    for (const auto& walker : walkers_) {
      auto state = walker.updated;
      const auto now = run_block(target_, walker.batch.target, layer.block, state).at(role);
      const auto& r = walker.target_rows.at(role).after;
      const auto& s = walker.source_rows.at(role).after;
      const auto change = walker.tuned_rows.at(role).after - s;
      const auto reads = layer.bias.empty() ? now.input : with_one(now.input);
      const auto rows = paired(
          walker, layer.block, change * roots_of_weights(source_.architecture(), source_block_, s),
          at::cat({reads, r - now.after, r}, -1) *
              roots_of_weights(target_.architecture(), layer.block, r));
      const auto parts = rows.target.split_with_sizes({reads.size(2), r.size(2), r.size(2)}, -1);
      const auto wanted = at::mm(rows.source.to(at::kDouble), map).to(at::kFloat);
      const auto missing = parts[1] + wanted;
      const auto x = parts[0].contiguous();
      const auto own = stats::product_of_rows(x, x);
      const auto both = stats::product_of_rows(x, missing);
      fit.gram = fit.gram.defined() ? fit.gram + own : own;
      fit.cross = fit.cross.defined() ? fit.cross + both : both;
      fit.wanted += wanted.square().sum().item<double>();
      fit.missing += missing.square().sum().item<double>();
      fit.stream += parts[2].square().sum().item<double>();
    }
    return fit;
  }

  void fit(
      const model::Linear& layer, const std::string& role, Tensors& values, Imitation& result) {
    const auto map = map_behind(role, layer.block);
    const auto sums = sums_of(layer, role, map, values);
    const bool constant = !layer.bias.empty();
    const auto width = sums.gram.size(0) - (constant ? 1 : 0);
    const auto scale = sums.gram.diagonal().narrow(0, 0, width).mean().item<double>();
    const auto found = ridge(sums.gram, sums.cross, options_.fit_ridge * scale, constant);
    const auto weight = found.narrow(0, 0, width);  // [in, out]
    add(layer.weight, layer.transposed ? weight : weight.t(), values, result);
    if (constant) {
      add(layer.bias, found[width], values, result);
    }
    // |Y - X A|^2 = |Y|^2 - 2 <A, X^T Y> + <A, X^T X A>
    const auto left = sums.missing - 2 * found.mul(sums.cross).sum().item<double>() +
                      found.mul(at::mm(sums.gram, found)).sum().item<double>();
    result.layers.push_back(
        {.module = layer.module,
         .source_block = source_block_,
         .wanted = std::sqrt(sums.wanted / std::max(sums.stream, 1e-300)),
         .share = sums.wanted > 0 ? 1 - left / sums.wanted : 1});
  }

  void add(const std::string& tensor, const at::Tensor& delta, Tensors& values, Imitation& result) {
    const auto stored = delta.to(at::kCPU, at::kFloat).contiguous();
    values[tensor] = with_deltas(target_, {{tensor, stored}}).at(tensor);
    result.deltas[tensor] = stored;
  }

  model::Model& source_;
  const SourceUpdate& update_;
  model::Model& target_;
  ImitateOptions options_;
  std::map<std::string, const stats::Matcher*> matchers_;
  std::vector<Walker> walkers_;
  int64_t source_block_ = -1;
};

}  // namespace

std::vector<int64_t> evenly_followed(int64_t source, int64_t target) {
  std::vector<int64_t> followed;
  for (int64_t j = 0; j < target; ++j) {
    followed.push_back(((j + 1) * source + target - 1) / target - 1);
  }
  return followed;
}

Imitation imitate(
    model::Model& source,
    const SourceUpdate& update,
    model::Model& target,
    const std::vector<const stats::Calibration*>& calibrations,
    const ImitateOptions& options,
    const ImitateMemory& memory) {
  for (auto* model : {&source, &target}) {
    model->set_group(std::numeric_limits<int64_t>::max());  // see WriterTaps
  }
  Imitator imitator(source, update, target, calibrations, options);
  auto result = memory.known;
  const auto& to = target.architecture();
  int64_t next_source = 0, first_source = 0, block = 0;
  for (size_t t = 0; t < to.towers.size(); ++t) {
    const auto from = source.architecture().towers[t].blocks;
    for (const auto followed : evenly_followed(from, to.towers[t].blocks)) {
      memory.watch(block, to.blocks());
      for (; next_source <= first_source + followed; ++next_source) {
        imitator.pass_source(next_source);
      }
      const bool known = block < result.blocks;
      imitator.pass_target(block++, result);
      if (!known && memory.save) {
        memory.save(result);
      }
    }
    first_source += from;
  }
  memory.watch(block, block);
  for (auto* model : {&source, &target}) {
    model->set_group(0);
  }
  return result;
}

}  // namespace theseus::transport
