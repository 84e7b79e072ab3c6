// Images from files to a model's input on one core, with bicubic resizing to 224 and the centre crop.
//
//   bench_images DIRECTORY [SECONDS]
//
// prints images a second: decoded and preprocessed, only decoded, only preprocessed.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/data/image.h"
#include "theseus/data/preprocess.h"

namespace {

using theseus::data::Image;

std::vector<std::filesystem::path> files_in(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  theseus::require(!files.empty(), directory.string(), ": no files");
  return files;
}

Image read(const std::filesystem::path& path) {
  const theseus::MappedFile file(path);
  return theseus::data::decode_image(file.bytes(), path.string());
}

template <class Body>
double rate(size_t count, double seconds, Body&& body) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  std::chrono::duration<double> passed{};
  size_t done = 0;
  while (passed.count() < seconds) {
    for (size_t i = 0; i < count; ++i, ++done) {
      body(i);
    }
    passed = Clock::now() - start;
  }
  return static_cast<double>(done) / passed.count();
}

void measure(const std::filesystem::path& directory, double seconds) {
  const auto files = files_in(directory);
  const theseus::data::Preprocessing how;
  std::vector<Image> images;
  for (const auto& file : files) {
    images.push_back(read(file));
  }
  const double both =
      rate(files.size(), seconds, [&](size_t i) { preprocess(read(files[i]), how); });
  const double decoded = rate(files.size(), seconds / 3, [&](size_t i) { read(files[i]); });
  const double preprocessed =
      rate(files.size(), seconds / 3, [&](size_t i) { preprocess(images[i], how); });
  std::printf("%.1f %.1f %.1f\n", both, decoded, preprocessed);
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_images DIRECTORY [SECONDS]\n");
    return 2;
  }
  try {
    at::set_num_threads(1);
    measure(words[1], count > 2 ? std::atof(words[2]) : 3.0);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
