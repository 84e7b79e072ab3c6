#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/data/examples.h"
#include "theseus/data/preprocess.h"

namespace theseus::data {

struct ImageBatch {
  std::vector<at::Tensor> views;  // per Preprocessing: [n, 3, h, w] float32
  std::vector<int64_t> examples;  // which they are
};

// Images in a given order, decoded and preprocessed in background threads some batches ahead. A corrupt
// image is left out, counted and named; more than `kMostSkipped` of those asked for is an InputError at the end.
class ImageLoader {
 public:
  static constexpr double kMostSkipped = 0.01;

  // Each image is decoded once for all views. The examples must outlive the loader.
  ImageLoader(
      const Examples& examples,
      std::vector<int64_t> order,
      std::vector<Preprocessing> views,
      int64_t batch_size,
      int threads);
  ~ImageLoader();

  // In order, and the same for any number of threads. Nothing after the last.
  std::optional<ImageBatch> next();
  const std::vector<std::string>& skipped() const;  // a message each, of what next() has passed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace theseus::data
