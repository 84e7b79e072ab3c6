#pragma once

#include <cstdint>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace theseus {

// Operations a second in products of large square matrices, measured in some hundredths of a second. On a CPU with all
// of the threads, by the clock on the wall.
double product_rate(c10::Device device, c10::ScalarType dtype);

// Seconds of one product of square matrices with so many rows, on a CPU likewise.
double seconds_of_product(c10::Device device, c10::ScalarType dtype, int64_t features);

// The rate of one thread on a CPU, by the time that it was running: others that share the machine do not count.
double product_rate_of_one_thread(c10::ScalarType dtype);

}  // namespace theseus
