#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "theseus/data/loader.h"
#include "theseus/gradient/labelled.h"
#include "theseus/train/pixels.h"

namespace theseus::train {

// The examples that something is learnt from or measured on.
struct Portion {
  const data::Examples* examples = nullptr;
  std::vector<int64_t> places;
};

struct BatchOptions {
  int64_t batch_size = 128;
  int threads = 2;  // that decode images
  uint64_t seed = 0;
  int64_t keep_bytes = 0;  // images that take no more than this are decoded once
  int64_t pack = 0;  // texts end to end in rows of so many ids, which take the place of examples
};

// Batches of a training, by step: each epoch has all examples in an order of its own, which the seed
// and the epoch decide. What does not fill a batch at the end of an epoch is left out of it. Which packed
// texts are neighbours the seed decides, once. The portion, model and reader must outlive this.
class Batches {
 public:
  // Throws InputError when there is less than one batch.
  Batches(
      Portion portion,
      const model::Model& model,
      model::Reader& reader,
      const BatchOptions& options,
      const Count& watch);

  // The batch of a step; steps in order do not decode twice.
  gradient::Labelled read(int64_t step);
  int64_t steps_in_epoch() const;
  int64_t size() const { return static_cast<int64_t>(portion_.places.size()); }  // examples or rows
  // A message for every image that could not be decoded so far.
  std::vector<std::string> skipped() const;

 private:
  std::vector<int64_t> order_of(int64_t epoch) const;
  gradient::Labelled next_images(int64_t step);
  gradient::Labelled rows_at(const std::vector<int64_t>& places) const;

  Portion portion_;
  const model::Model& model_;
  model::Reader& reader_;
  BatchOptions options_;
  std::optional<Pixels> pixels_;
  std::optional<gradient::Labelled> rows_;  // of packed texts; the portion's places are rows then
  std::vector<int64_t> order_;              // of the examples or rows in epoch_
  int64_t epoch_ = -1;
  std::unique_ptr<data::ImageLoader> loader_;  // of the rest of an epoch, where images are not kept
  int64_t next_ = -1;                          // the step that it gives next
};

}  // namespace theseus::train
