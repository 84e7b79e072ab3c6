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
  std::vector<int64_t> examples;  // which they are, [n]
};

// Images in a given order, decoded and preprocessed in background threads some batches ahead. A corrupt
// image is left out of its batch, counted and named; a batch that has none left is passed over. More than
// `kMostSkipped` of those asked for is an InputError at the end.
class ImageLoader {
 public:
  static constexpr double kMostSkipped = 0.01;

  // Each image is decoded once for all views. The examples must outlive the loader. Throws InputError
  // when they are no images, and InternalError for an order, a batch size or threads that cannot be.
  ImageLoader(
      const Examples& examples,
      std::vector<int64_t> order,
      std::vector<Preprocessing> views,
      int64_t batch_size,
      int threads);
  // At any time; waits for the images that are being read.
  ~ImageLoader();
  ImageLoader(const ImageLoader&) = delete;
  ImageLoader& operator=(const ImageLoader&) = delete;

  // In order, and the same for any number of threads. Nothing after the last. What a thread throws
  // other than the InputError of a corrupt image is thrown here when its batch is due, and ever after.
  std::optional<ImageBatch> next();
  const std::vector<std::string>& skipped() const;  // a message each, of what next() has passed

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace theseus::data
