#pragma once

#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "theseus/transport/plan.h"
#include "theseus/transport/schedule.h"

namespace theseus::transport {

// How fast a machine does what a job is made of, a second.
struct Rates {
  double passes = 0;   // operations of products in the dtype that models run in
  double float32 = 0;  // operations of products
  double float64 = 0;
};

// Measured on the device in a fraction of a second, with all threads.
Rates measure_rates(c10::Device device, c10::ScalarType dtype_of_passes);

// Operations that carry these through maps that are matrices.
double carrying_cost(const std::vector<Load>& loads);

// Seconds that a job takes which costs this and reads and writes so many bytes: within a factor of two where
// nothing else uses the machine.
double seconds_of(const Cost& cost, int64_t bytes, const Rates& rates);

}  // namespace theseus::transport
