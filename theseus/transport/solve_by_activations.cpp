// Moments of a linear layer's output. With x~ = [x; 1] and A = [W, b] the output is y = A x~, so
//
//   C_out = A_s C~_in A_t^T,   C~ = [C, s; r^T, M]   (raw)        C_out = W_s C_in W_t^T   (centred)
//
// A layer that widens fills only as many directions as its input has. Then with thin QR factors
// A = Q R the problem is C_out = Q_s (R_s C~ R_t^T) Q_t^T, and the small core is solved.
//
// Where rows are kept, X [M, d] with M < d, the output's are X~ A^T, and with thin QR factors X^T = Q R of both
// sides C = Q_s (R_s R_t^T) Q_t^T: the same, with a core of M x M.

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <ATen/ATen.h>

#include "theseus/base/bring.h"
#include "theseus/base/error.h"
#include "theseus/maps/certify.h"
#include "theseus/maps/row_gram.h"
#include "theseus/transport/solve.h"

namespace theseus::transport {
namespace {

// A_s C~ A_t^T, without a C~ in memory: C is large.
at::Tensor image_with_ones(
    const at::Tensor& source,
    const at::Tensor& cross,
    const at::Tensor& target,
    const at::Tensor& source_sum,
    const at::Tensor& target_sum,
    int64_t rows) {
  const auto ds = cross.size(0), dt = cross.size(1);
  const auto ws = source.narrow(1, 0, ds), wt = target.narrow(1, 0, dt);
  const auto bs = source.select(1, ds), bt = target.select(1, dt);
  auto result = at::mm(at::mm(ws, cross), wt.t());
  result.addr_(ws.mv(source_sum) + bs * static_cast<double>(rows), bt);
  return result.addr_(bs, wt.mv(target_sum));
}

// A = Q R by the Cholesky factor of A^T A, some times faster than by reflections. Its square costs the second
// half of the digits, which another round gives back; nothing where A is too ill-conditioned for that.
std::optional<std::pair<at::Tensor, at::Tensor>> find_thin(const at::Tensor& affine) {
  constexpr double kOrthonormal = 1e-12;
  constexpr int kRounds = 2;
  if (affine.select(1, -1).count_nonzero().item<int64_t>() == 0) {
    return {};  // no bias: R has a zero
  }
  at::Tensor q = affine, r;
  for (int round = 0; round < kRounds; ++round) {
    const auto [lower, failed] = at::linalg_cholesky_ex(maps::row_gram(q.t()));
    if (failed.item<int>() != 0) {
      return {};
    }
    const auto upper = lower.t();
    q = at::linalg_solve_triangular(upper, q, /*upper=*/true, /*left=*/false);
    r = r.defined() ? upper.matmul(r) : upper;
    if (maps::orthogonality(q) <= kOrthonormal) {
      return std::pair(q, r);
    }
  }
  return {};
}

// Thin QR of what is taller than wide: {Q, R}; otherwise {undefined, A}.
std::pair<at::Tensor, at::Tensor> thin(const at::Tensor& affine) {
  if (affine.size(0) <= affine.size(1)) {
    return {at::Tensor(), affine};
  }
  if (const auto found = find_thin(affine)) {
    return *found;
  }
  auto [q, r] = at::linalg_qr(affine);
  return {q, r};
}

// An entry of float32 activations errs by some units u = 2^-24 of the row it belongs to, and these errors are
// independent of each other, so they spread over the d directions: one holds u / sqrt(d) of |X|, some times.
constexpr double kRowError = 16 * 0x1p-24;

// |mean|^2 M, which centring took off the squares of rows with this sum.
double square_of_means(const at::Tensor& sum, int64_t rows) {
  return sum.square().sum().item<double>() / static_cast<double>(rows);
}

// The statistics of paired rows S [M, ds] and R [M, dt], from which centring took the squares of their means.
void use_rows(
    const at::Tensor& source,
    const at::Tensor& target,
    std::pair<double, double> means,
    const maps::Needs& needs,
    maps::Problem& problem) {
  const auto [source_basis, s] = thin(source.to(at::kDouble).t());
  const auto [target_basis, r] = thin(target.to(at::kDouble).t());
  problem.source_basis = source_basis;
  problem.target_basis = target_basis;
  problem.factored = true;
  problem.cross = at::mm(s, r.t());
  const auto error = [](const at::Tensor& core, double mean, int64_t width) {
    const auto square = core.square().sum().item<double>() + mean;
    return kRowError * std::sqrt(square / static_cast<double>(width));
  };
  problem.rounding = {
      .source = s,
      .target = r,
      .source_error = error(s, means.first, source.size(1)),
      .target_error = error(r, means.second, target.size(1))};
  problem.source_gram = needs.source_gram ? at::mm(s, s.t()) : at::Tensor();
  problem.target_gram = needs.target_gram ? at::mm(r, r.t()) : at::Tensor();
}

// What float32 activations that are all the same leave of C once their means s / M and r / M are taken off:
// (6e-8)^2 of M times the product of the means, and some.
double rounding_of_centring(const at::Tensor& s, const at::Tensor& r, int64_t rows) {
  constexpr double kRounding = 1e-13;
  return kRounding * (s.norm() * r.norm()).item<double>() / static_cast<double>(rows);
}

// How many directions of rows X [M, d] with this Gram matrix hold more than the rounding of X, rows taken before their
// mean is taken off. Without a Gram: all of them.
int64_t directions_in(const at::Tensor& gram, const at::Tensor& sum, int64_t rows, bool centred) {
  if (!gram.defined()) {
    return std::numeric_limits<int64_t>::max();
  }
  const auto mean = centred ? square_of_means(sum, rows) : 0;
  const auto square = gram.trace().item<double>() + mean;
  const auto floor = kRowError * kRowError / static_cast<double>(gram.size(0)) * square;
  const auto values = at::linalg_eigvalsh((gram + gram.t()) / 2);
  return std::max<int64_t>((values > floor).sum().item<int64_t>(), 1);
}

// One of those that the tensor holds.
const model::Parameter& parameter_in(
    const model::Architecture& architecture, const std::string& tensor) {
  for (const auto& parameter : architecture.parameters) {
    if (parameter.tensor == tensor) {
      return parameter;
    }
  }
  throw InternalError("no tensor " + tensor);
}

}  // namespace

maps::Problem Solver::from_observed(const stats::PairMoments& moments) const {
  const auto used = options_.center ? moments.centred() : moments;
  maps::Problem problem{
      .rows = used.distinct - (options_.center ? 1 : 0),
      .floor = options_.center
                   ? rounding_of_centring(moments.source_sum, moments.target_sum, moments.rows)
                   : 0,
      .cross = used.cross,
      .source_gram = used.source_gram,
      .target_gram = used.target_gram};
  problem.most = std::min(
      directions_in(used.source_gram, moments.source_sum, moments.rows, options_.center),
      directions_in(used.target_gram, moments.target_sum, moments.rows, options_.center));
  if (used.keeps_rows()) {
    const auto [source, target] = used.kept();
    const auto means = options_.center ? std::pair(
                                             square_of_means(moments.source_sum, moments.rows),
                                             square_of_means(moments.target_sum, moments.rows))
                                       : std::pair(0.0, 0.0);
    use_rows(source, target, means, maps::needs_of(method_, options_), problem);
  }
  return problem;
}

at::Tensor Solver::affine(
    const model::Model& model,
    const model::Linear& layer,
    size_t part,
    const stats::SourceBlock* block,
    c10::Device device) const {
  const auto [weight, bias] = layer_of(model, layer, part, block, device);
  if (options_.center) {
    return weight.to(at::kDouble);
  }
  const auto wide = weight.to(at::kDouble);
  const auto last =
      bias.defined() ? bias.to(at::kDouble) : at::zeros({wide.size(0)}, wide.options());
  return at::cat({wide, last.unsqueeze(1)}, 1);
}

// Some of the layer's rows at a time: in float64 all of them are several times the weight.
at::Tensor Solver::rows_behind(
    const at::Tensor& rows,
    const model::Model& model,
    const model::Linear& layer,
    size_t part,
    const stats::SourceBlock* block) const {
  constexpr int64_t kAtATime = 1024;
  const auto [weight, bias] = layer_of(model, layer, part, block, rows.device());
  const auto x = rows.to(at::kDouble);  // [M, in]
  auto result = at::empty({x.size(0), weight.size(0)}, x.options());
  for (int64_t first = 0; first < weight.size(0); first += kAtATime) {
    const auto count = std::min(kAtATime, weight.size(0) - first);
    auto some = result.narrow(1, first, count);
    some.copy_(at::mm(x, weight.narrow(0, first, count).to(at::kDouble).t()));
  }
  if (bias.defined() && !options_.center) {
    result.add_(bias.to(at::kDouble));
  }
  return result;
}

std::pair<at::Tensor, at::Tensor> Solver::layer_of(
    const model::Model& model,
    const model::Linear& layer,
    size_t part,
    const stats::SourceBlock* block,
    c10::Device device) const {
  const auto value = [&](const std::string& tensor) {
    const auto& parameter = parameter_in(model.architecture(), tensor);
    const auto stored = block == nullptr || parameter.block == model::kOuter
                            ? model.checkpoint().tensor(parameter.stored)
                            : stats::blended(source_, *block, tensor);
    const auto result = bring(stored, device);  // a copy, so that the file's pages can go
    model.checkpoint().forget(parameter.stored);
    return result;
  };
  int64_t row = 0;
  const auto& spaces = model.architecture().spaces;
  for (size_t i = 0; i < part; ++i) {
    row += spaces.at(layer.out[i]).width;
  }
  const auto rows = spaces.at(layer.out[part]).width;
  const auto whole = layer.transposed ? value(layer.weight).t() : value(layer.weight);
  return {
      whole.narrow(0, row, rows),
      layer.bias.empty() ? at::Tensor() : value(layer.bias).narrow(0, row, rows)};
}

// C of several layers is the sum of theirs, so their rows go under each other.
maps::Problem Solver::from_rows_of(
    const std::vector<Writer>& writers, int64_t stage, const stats::Moments& moments) const {
  maps::Problem problem;
  std::vector<at::Tensor> sources, targets;
  std::pair<double, double> means;
  for (const auto& writer : writers) {
    const auto& input = *find_moments(writer.target->in, moments);
    const auto used = options_.center ? input.centred() : input;
    const auto [source, target] = used.kept();
    sources.push_back(
        rows_behind(source, source_, *writer.source, writer.part, source_block(stage)));
    targets.push_back(rows_behind(target, target_, *writer.target, writer.part, nullptr));
    problem.rows += used.distinct - (options_.center ? 1 : 0);
    if (options_.center) {  // the sums of what the layers write, without their biases
      const auto sum = [&](const at::Tensor& in, const auto&... layer) {
        return rows_behind(in.unsqueeze(0), layer...).squeeze(0);
      };
      const auto left =
          sum(input.source_sum, source_, *writer.source, writer.part, source_block(stage));
      const auto right = sum(input.target_sum, target_, *writer.target, writer.part, nullptr);
      problem.floor += rounding_of_centring(left, right, input.rows);
      means.first += square_of_means(left, input.rows);
      means.second += square_of_means(right, input.rows);
    }
  }
  use_rows(
      at::cat(sources, 0), at::cat(targets, 0), means, maps::needs_of(method_, options_), problem);
  return problem;
}

maps::Problem Solver::from_writers(
    const std::vector<Writer>& all, int64_t stage, const stats::Moments& moments) const {
  std::vector<Writer> writers;
  for (const auto& writer : all) {
    if (find_moments(writer.target->in, moments) != nullptr) {
      writers.push_back(writer);  // others did not run: another tower's
    }
  }
  const auto kept = std::count_if(writers.begin(), writers.end(), [&](const Writer& writer) {
    return find_moments(writer.target->in, moments)->keeps_rows();
  });
  if (!writers.empty() && kept == std::ssize(writers)) {
    return from_rows_of(writers, stage, moments);
  }
  const bool alone = all.size() == 1;  // bases of several writers would differ
  const auto needs = maps::needs_of(method_, options_);
  maps::Problem problem;
  int64_t rows = 0;
  stats::Grams every_gram{.source = true, .target = true};
  at::Tensor source_sum,
      target_sum;  // of what they write, without biases: for rows about their means
  for (const auto& writer : writers) {
    const auto* found = find_moments(writer.target->in, moments);
    const auto input =
        found->keeps_rows()  // and another layer's are not
            ? found->multiplied({.source = needs.source_gram, .target = needs.target_gram})
            : *found;
    const auto used = options_.center ? input.centred() : input;
    const auto device = used.cross.device();
    const auto whole_source =
        affine(source_, *writer.source, writer.part, source_block(stage), device);
    const auto whole_target = affine(target_, *writer.target, writer.part, nullptr, device);
    const auto [source_basis, source] =
        alone ? thin(whole_source) : std::pair(at::Tensor(), whole_source);
    const auto [target_basis, target] =
        alone ? thin(whole_target) : std::pair(at::Tensor(), whole_target);
    const auto image = [&](const at::Tensor& left, const at::Tensor& second,
                           const at::Tensor& right, const at::Tensor& left_sum,
                           const at::Tensor& right_sum) {
      return options_.center ? at::mm(at::mm(left, second), right.t())
                             : image_with_ones(left, second, right, left_sum, right_sum, used.rows);
    };
    problem.rows += used.distinct - (options_.center ? 1 : 0);
    if (options_.center) {
      const auto left = source.mv(input.source_sum), right = target.mv(input.target_sum);
      problem.floor += rounding_of_centring(left, right, input.rows);
      accumulate(source_sum, left);
      accumulate(target_sum, right);
    }
    problem.source_basis = source_basis;
    problem.target_basis = target_basis;
    accumulate(problem.cross, image(source, used.cross, target, used.source_sum, used.target_sum));
    if (used.source_gram.defined()) {
      accumulate(
          problem.source_gram,
          image(source, used.source_gram, source, used.source_sum, used.source_sum));
    }
    if (used.target_gram.defined()) {
      accumulate(
          problem.target_gram,
          image(target, used.target_gram, target, used.target_sum, used.target_sum));
    }
    rows += input.rows;
    every_gram = {
        .source = every_gram.source && used.source_gram.defined(),
        .target = every_gram.target && used.target_gram.defined()};
  }
  problem.most = std::min(
      directions_in(
          every_gram.source ? problem.source_gram : at::Tensor(), source_sum, rows,
          options_.center),
      directions_in(
          every_gram.target ? problem.target_gram : at::Tensor(), target_sum, rows,
          options_.center));
  return problem;
}

maps::Problem Solver::problem(
    const std::string& space, int64_t stage, const stats::Moments& moments) const {
  maps::Problem result;
  if (method_.needs.weight_cross || method_.needs.weight_grams) {
    result = from_weights(space, stage, {});
  } else if (method_.needs.moments) {
    const auto* observed = find_moments(space, moments);
    const auto writers = writers_of(space, stage);
    result = observed != nullptr ? from_observed(*observed) : from_writers(writers, stage, moments);
    if (observed != nullptr) {
      result.most = std::min(
          {result.most, directions_of(source_, own_space(space, stage), false),
           directions_of(target_, space, false)});
    } else if (writers.size() == 1) {
      const auto& from = *writers.front().source;
      const auto& to = *writers.front().target;
      result.most = std::min(
          {result.most, directions_of(source_, from.in, !from.bias.empty()),
           directions_of(target_, to.in, !to.bias.empty())});
    }
  }
  add_sizes(space, stage, result);
  return result;
}

// With y = g n + b and sum(n) = 0, y . (1 / g) = sum(b / g) for every row: about the mean one direction is
// missing, and of the rows themselves, too, when that sum is zero. What statistics there are of it are
// rounding. A constant beside y makes up for it.
int64_t Solver::directions_of(
    const model::Model& model, const std::string& space, bool constant) const {
  constexpr double kNothing = 1e-6;  // of a row's norm, which float32 resolves to 1e-7
  const auto& found = model.architecture().spaces.at(space);
  if (found.norm.empty()) {
    return found.width + (constant && !options_.center ? 1 : 0);
  }
  if (options_.center || constant) {
    return found.width - (options_.center ? 1 : 0);
  }
  const auto value = [&](const char* tensor) {
    return model.checkpoint()
        .tensor(parameter_in(model.architecture(), found.norm + tensor).stored)
        .to(at::kDouble);
  };
  const auto gain = value(".weight"), shift = value(".bias");
  const auto normal = 1 / at::where(gain == 0, at::full_like(gain, 1e-30), gain);
  const auto along = (normal * shift).sum() / normal.norm();
  const auto row = (gain.square() + shift.square()).sum().sqrt();
  return found.width - (along.abs() <= kNothing * row).to(at::kLong).item<int64_t>();
}

}  // namespace theseus::transport
