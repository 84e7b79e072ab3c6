#pragma once

#include <string>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace theseus {

// "auto", "cpu", "cuda" or "cuda:N". Throws InputError when this libtorch or this machine has no such
// device: nothing falls back to another one. "auto" is what `choose_device` says.
c10::Device parse_device(const std::string& text);

struct ChosenDevice {
  c10::Device device;
  std::string
      why;  // names the GPU, or says why one that is there is not used; empty: there is none
};

// The GPU with the most free memory, where one works and has room for `bytes` and some more; else the CPU.
ChosenDevice choose_device(int64_t bytes = 0);

// The CUDA device of the n-th process of this machine: they take turns when there are fewer. Throws
// InputError like parse_device.
c10::Device cuda_device_of(int n);

// Whether float64 products take about as long as float32 ones, as on the GPUs of data centres; on others they take some
// thirty times as long. A GPU is measured when it is first asked about. No for a CPU: half as fast.
bool multiplies_float64_fast(c10::Device device);
// What large products are computed in there: float64 where that is as fast, else float32.
c10::ScalarType dtype_of_products(c10::Device device);

// For tests: while it lives a CPU computes as a GPU that multiplies float64 fast.
class PretendFastFloat64 {
 public:
  PretendFastFloat64();
  ~PretendFastFloat64();
  PretendFastFloat64(const PretendFastFloat64&) = delete;
  PretendFastFloat64& operator=(const PretendFastFloat64&) = delete;
};

// "float32", "bfloat16" or "float16": what the forward pass computes in. Throws InputError, which also lists
// what `more` the caller knows.
c10::ScalarType parse_compute_dtype(const std::string& text, const std::string& more = "");

// libtorch gives products in half precision to oneDNN wherever the processor allows it, and fails where the user has
// limited oneDNN (DNNL_MAX_CPU_ISA) to less than AVX-512. Then libtorch computes them by itself from now on.
void respect_onednn_limit();

// While it lives a GPU rounds the factors of float32 products to 10 bits, which is many times faster. So it is
// for all threads of the program: nothing exact may run beside.
class Tf32 {
 public:
  explicit Tf32(bool on);
  ~Tf32();
  Tf32(const Tf32&) = delete;
  Tf32& operator=(const Tf32&) = delete;

 private:
  bool on_;
};

}  // namespace theseus
