// Maps of one block of ViT-B/16 to ViT-B/16-plus: the space behind the activation function
// (3072 x 3584), the one before it, which has rank 769 and is completed by the former, and one of the
// ten 768 x 896 ones. GF/s counts what a singular value decomposition would not need to be:
// 2 m m n for each whole product of the size of the map.

#include <cmath>
#include <cstdlib>
#include <tuple>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>

#include "theseus/maps/complete.h"
#include "theseus/maps/method.h"
#include "theseus/maps/polar.h"

namespace {

namespace maps = theseus::maps;

// DEVICE=cuda: there.
at::TensorOptions options() {
  const char* device = std::getenv("DEVICE");
  return at::TensorOptions(at::kDouble).device(device == nullptr ? "cpu" : device);
}

at::Tensor gaussian(int64_t rows, int64_t columns) {
  return at::randn({rows, columns}, options());
}

at::Tensor orthonormal(int64_t rows, int64_t columns) {
  return std::get<0>(at::linalg_qr(gaussian(rows, columns)));
}

// S^T R of rows that share a few strong directions, with singular values over four decades.
at::Tensor cross(int64_t ds, int64_t dt) {
  const auto rows = 2 * dt;
  const auto scale = [](int64_t d) { return at::logspace(0, -2, d, 10.0, options()); };
  const auto source = gaussian(rows, ds) * scale(ds);
  const auto target = source.matmul(gaussian(ds, dt)) / std::sqrt(ds) + 0.1 * gaussian(rows, dt);
  return source.t().matmul(target);
}

void report(benchmark::State& state, const maps::Map& map, double flops) {
  state.SetLabel(map.route);
  state.counters["rank"] = static_cast<double>(map.rank);
  state.counters["condition"] = map.condition;
  state.counters["orthogonality"] = map.orthogonality;
  state.counters["asymmetry"] = map.asymmetry;
  state.counters["GF/s"] =
      benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

void solve(benchmark::State& state, const maps::Problem& problem, double flops) {
  maps::Map map;
  for (auto iteration : state) {
    (void)iteration;
    map = maps::method("procrustes").solve(problem, {});
    benchmark::DoNotOptimize(map.matrix.sum().item<double>());  // a GPU has ended then
  }
  report(state, map, flops);
}

void procrustes(benchmark::State& state) {
  const c10::NoGradGuard no_gradients;
  at::manual_seed(0);
  const auto ds = state.range(0);
  const auto dt = state.range(1);
  const auto size = static_cast<double>(ds * ds) * static_cast<double>(dt);
  solve(
      state, {.source_width = ds, .target_width = dt, .rows = 2 * dt, .cross = cross(ds, dt)},
      6 * size);
}

void completion(benchmark::State& state) {
  const c10::NoGradGuard no_gradients;
  at::manual_seed(0);
  const int64_t ds = 3072;
  const int64_t dt = 3584;
  const int64_t ks = 769;
  const int64_t kt = 897;
  solve(
      state,
      {.source_width = ds,
       .target_width = dt,
       .rows = 2 * dt,
       .source_basis = orthonormal(ds, ks),
       .target_basis = orthonormal(dt, kt),
       .cross = cross(ks, kt),
       .prior = orthonormal(dt, ds).t().to(at::kFloat).contiguous()},
      10.0 * static_cast<double>(ds * dt * ks));
}

BENCHMARK(procrustes)
    ->Args({768, 896})
    ->Args({3072, 3584})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(completion)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
