// The parts of a transport at ViT-B/16 -> ViT-B/16-plus widths, each as a share of what the machine does at
// best: its own matrix product, its own copy, its own disk. Prints a Markdown table.
//
//   bench_parts [DIRECTORY]     DIRECTORY: on the disk to measure (default: here); DEVICE=cuda: there

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <c10/util/Exception.h>

#include "theseus/base/stopwatch.h"
#include "theseus/checkpoint/checkpoint.h"
#include "theseus/checkpoint/write.h"
#include "theseus/maps/polar.h"
#include "theseus/stats/moments.h"

namespace {

namespace fs = std::filesystem;

constexpr int64_t kSource = 3072, kTarget = 3584, kWidth = 768, kWide = 896, kRows = 7232;
constexpr int64_t kFile = int64_t{1} << 30;

at::TensorOptions on_device() {
  const char* device = std::getenv("DEVICE");
  return at::TensorOptions(device == nullptr ? "cpu" : device);
}

void wait_for(const at::Tensor& tensor) {
  tensor.flatten().slice(0, 0, 1).to(at::kCPU);
}

// The best of some rounds: others use the machine, too.
double seconds(const std::function<void()>& work, int rounds = 3) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    theseus::Seconds spent;
    {
      const theseus::Stopwatch watch(spent, "");
      work();
    }
    best = std::min(best, spent[""]);
  }
  return best;
}

void row(const std::string& part, double spent, double work, double peak, const char* unit) {
  std::printf(
      "| %s | %.3f s | %.1f %s | %.0f %% |\n", part.c_str(), spent, work / spent * 1e-9, unit,
      100 * work / spent / peak);
  std::fflush(stdout);
}

double product_rate(at::ScalarType dtype, int64_t size) {
  const auto a = at::randn({size, size}, on_device().dtype(dtype));
  auto c = a.matmul(a);
  wait_for(c);
  const auto spent = seconds([&] {
    at::matmul_out(c, a, a);
    wait_for(c);
  });
  return 2.0 * static_cast<double>(size * size * size) / spent;
}

void arithmetic() {
  const auto single = product_rate(at::kFloat, 4096);
  const auto twice = product_rate(at::kDouble, 3072);
  std::printf("| product of 4096, float32 | | %.1f GF/s | the peak |\n", single * 1e-9);
  std::printf("| product of 3072, float64 | | %.1f GF/s | the peak |\n", twice * 1e-9);

  const auto s = at::randn({kRows, kSource}, on_device());
  const auto r = s.matmul(at::randn({kSource, kTarget}, on_device())) +
                 at::randn({kRows, kTarget}, on_device());
  const auto size = static_cast<double>(kSource * kTarget);
  theseus::stats::PairMoments moments;
  moments.add(s, r);
  const auto counted = seconds([&] {
    moments.add(s, r);
    wait_for(moments.cross);
  });
  row("moments of 7232 rows, 3072 x 3584", counted, 2 * size * kRows, single, "GF/s");

  at::Tensor map;
  const auto solved = seconds(
      [&] {
        map = theseus::maps::polar(moments.cross).factor();
        wait_for(map);
      },
      2);
  // Gram, eigenvectors (9 m^3), U^T C, U V^T.
  row("polar factor, 3072 x 3584 (counted as a decomposition)", solved,
      size * kSource * 5 + 9.0 * kSource * kSource * kSource, twice, "GF/s");

  const auto delta = at::randn({kSource, kWidth}, on_device());
  const auto in = at::randn({kWidth, kWide}, on_device());
  const auto out = map.to(at::kFloat);
  at::Tensor carried;
  const auto moved = seconds([&] {
    carried = out.t().matmul(delta).matmul(in);
    wait_for(carried);
  });
  row("transport of a 3072 x 768 update", moved, 2.0 * kTarget * kWidth * (kSource + kWide), single,
      "GF/s");
}

int open_file(const fs::path& path, int flags) {
  const int file = ::open(path.c_str(), flags, 0600);
  TORCH_CHECK(file >= 0, "cannot open ", path.string());
  return file;
}

// So that reading asks the disk.
void forget_cached(const fs::path& path) {
  const int file = open_file(path, O_RDONLY);
  ::fsync(file);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  ::close(file);
}

void write_plainly(const fs::path& path, const at::Tensor& bytes) {
  const int file = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (int64_t done = 0; done < bytes.numel();) {
    const auto count = ::write(
        file, bytes.data_ptr<uint8_t>() + done,
        static_cast<size_t>(std::min<int64_t>(1 << 24, bytes.numel() - done)));
    TORCH_CHECK(count > 0, "cannot write ", path.string());
    done += count;
  }
  ::fsync(file);
  ::close(file);
}

void read_plainly(const fs::path& path, at::Tensor& bytes) {
  const int file = open_file(path, O_RDONLY);
  ::posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
  for (int64_t done = 0; done < bytes.numel();) {
    const auto count = ::read(
        file, bytes.data_ptr<uint8_t>() + done,
        static_cast<size_t>(std::min<int64_t>(1 << 24, bytes.numel() - done)));
    TORCH_CHECK(count > 0, "cannot read ", path.string());
    done += count;
  }
  ::close(file);
}

void files(const fs::path& directory) {
  const auto plain = directory / "bench_parts.raw", stored = directory / "bench_parts.safetensors";
  auto bytes = at::ones({kFile}, at::kByte);
  auto other = at::empty_like(bytes);
  const auto copied = 2.0 * kFile / seconds([&] { other.copy_(bytes); });
  const auto written = kFile / seconds([&] { write_plainly(plain, bytes); });
  double cold = 1e30;
  for (int i = 0; i < 3; ++i) {
    forget_cached(plain);
    cold = std::min(cold, seconds([&] { read_plainly(plain, other); }, 1));
  }
  const auto read = kFile / cold;
  std::printf("| copy in memory | | %.1f GB/s | the peak |\n", copied * 1e-9);
  std::printf("| write(2) of 1 GiB, synced | | %.2f GB/s | the peak |\n", written * 1e-9);
  std::printf("| read(2) of 1 GiB from the disk | | %.2f GB/s | the peak |\n", read * 1e-9);

  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (int64_t i = 0; i < 64; ++i) {
    tensors.emplace_back(
        "tensor." + std::to_string(i), bytes.slice(0, i * kFile / 64, (i + 1) * kFile / 64));
  }
  row("safetensors written, synced",
      seconds([&] { theseus::checkpoint::write_safetensors(stored, tensors); }), kFile, written,
      "GB/s");
  const auto all = [&] {
    const auto checkpoint = theseus::checkpoint::Checkpoint::open(stored);
    for (size_t i = 0; i < tensors.size(); ++i) {
      other.slice(0, static_cast<int64_t>(i) * kFile / 64, static_cast<int64_t>(i + 1) * kFile / 64)
          .copy_(checkpoint.tensor(tensors[i].first));
    }
  };
  double first = 1e30;
  for (int i = 0; i < 3; ++i) {
    forget_cached(stored);
    first = std::min(first, seconds(all, 1));
  }
  row("safetensors read from the disk", first, kFile, read, "GB/s");
  row("safetensors read when cached, copied", seconds(all), 2.0 * kFile, copied, "GB/s");
  fs::remove(plain);
  fs::remove(stored);
}

}  // namespace

int main(int count, char** words) {
  const c10::NoGradGuard no_gradients;
  at::manual_seed(0);
  std::printf(
      "%d threads\n\n| part | time | rate | share |\n|---|---|---|---|\n", at::get_num_threads());
  arithmetic();
  files(count > 1 ? words[1] : ".");
}
