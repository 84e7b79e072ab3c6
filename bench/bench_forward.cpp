// Forward of timm's vit_tiny_patch16_224 on 64 images, the peer of bench/peer_vit.py.
//
//   THESEUS_BENCH_MODEL=DIRECTORY bench_forward     (written by peer_vit.py, or a real checkpoint)

#include <cstdlib>

#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/GradMode.h>
#include <torch/cuda.h>

#include "theseus/model/model.h"

namespace {

constexpr int64_t kImages = 64;

void forward(benchmark::State& state, const char* path, c10::Device device) {
  const c10::NoGradGuard no_gradients;
  auto model = theseus::model::Model::open(path, {.placement = {.device = device}});
  at::manual_seed(0);
  const theseus::model::Batch batch = {
      {"pixel_values", at::randn({kImages, 3, 224, 224}).to(device)}};
  const auto run = [&] {
    return model.forward(batch).at("logits").sum().item<float>();  // waits for the device
  };
  run();  // brings in the weights
  for (auto iteration : state) {
    (void)iteration;
    benchmark::DoNotOptimize(run());
  }
  state.SetItemsProcessed(state.iterations() * kImages);
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = std::getenv("THESEUS_BENCH_MODEL");
  benchmark::Initialize(&argc, argv);
  if (path != nullptr) {
    benchmark::RegisterBenchmark("vit_tiny/cpu", forward, path, c10::Device(c10::kCPU))
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
    if (torch::cuda::is_available()) {
      benchmark::RegisterBenchmark("vit_tiny/cuda", forward, path, c10::Device(c10::kCUDA, 0))
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
