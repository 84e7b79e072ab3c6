#include "theseus/base/rates.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <limits>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/side_by_side.h"

namespace theseus {
namespace {

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_clock() {
  timespec now = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The fastest of some turns, by `clock`: something may come between.
double fastest_product(
    c10::Device device, c10::ScalarType dtype, int64_t features, double (*clock)()) {
  const c10::InferenceMode no_graph;
  const auto factor = at::ones({features, features}, at::TensorOptions(device).dtype(dtype));
  at::mm(factor, factor);  // the first one loads libraries and wakes threads
  double fastest = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 4; ++turn) {
    finish_queued(device);
    const auto start = clock();
    at::mm(factor, factor);
    finish_queued(device);
    fastest = std::min(fastest, clock() - start);
  }
  return fastest;
}

// Doubles the size until a product takes long enough to be measured, so that a slow machine is asked for little.
double best_rate(c10::Device device, c10::ScalarType dtype, double (*clock)()) {
  const double long_enough = device.is_cpu() ? 0.01 : 0.002;
  const int64_t largest = device.is_cpu() ? 1536 : 8192;
  for (int64_t n = 256;; n *= 2) {
    n = std::min(n, largest);
    const auto fastest = fastest_product(device, dtype, n, clock);
    if (fastest >= long_enough || n == largest) {
      return 2.0 * static_cast<double>(n * n * n) / fastest;
    }
  }
}

}  // namespace

double seconds_of_product(c10::Device device, c10::ScalarType dtype, int64_t features) {
  return fastest_product(device, dtype, features, wall_clock);
}

double product_rate(c10::Device device, c10::ScalarType dtype) {
  return best_rate(device, dtype, wall_clock);
}

double product_rate_of_one_thread(c10::ScalarType dtype) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto rate = best_rate(c10::kCPU, dtype, thread_clock);
  at::set_num_threads(threads);
  return rate;
}

}  // namespace theseus
