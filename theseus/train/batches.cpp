#include "theseus/train/batches.h"

#include <numeric>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/data/shuffle.h"

namespace theseus::train {

Batches::Batches(
    Portion portion,
    const model::Model& model,
    model::Reader& reader,
    const BatchOptions& options,
    const Count& watch)
    : portion_(std::move(portion)), model_(model), reader_(reader), options_(options) {
  if (options.pack > 0) {
    data::Random random(options.seed);
    data::shuffle_front(portion_.places, portion_.places.size(), random);
    rows_ = gradient::read_packed(*portion_.examples, portion_.places, reader, options.pack);
    portion_.places.resize(static_cast<size_t>(rows_->size()));
    std::iota(portion_.places.begin(), portion_.places.end(), 0);
  }
  require(
      steps_in_epoch() > 0, "--batch-size ", options.batch_size, ": there are only ",
      portion_.places.size(), rows_ ? " rows" : " examples", " to learn from");
  const auto& examples = *portion_.examples;
  if (examples.image &&
      Pixels::bytes(portion_.places.size(), reader.images()) <= options.keep_bytes) {
    pixels_.emplace(examples, portion_.places, reader.images(), options.threads, watch);
  }
}

int64_t Batches::steps_in_epoch() const {
  return static_cast<int64_t>(portion_.places.size()) / options_.batch_size;
}

std::vector<int64_t> Batches::order_of(int64_t epoch) const {
  // Of neighbouring seeds, too, epochs share no order: the first draw mixes all bits.
  data::Random seeds(options_.seed);
  data::Random random(seeds.next() ^ static_cast<uint64_t>(epoch));
  auto order = portion_.places;
  data::shuffle_front(order, order.size(), random);
  order.resize(static_cast<size_t>(steps_in_epoch() * options_.batch_size));
  return order;
}

gradient::Labelled Batches::read(int64_t step) {
  const auto& examples = *portion_.examples;
  if (examples.image && !pixels_) {
    return next_images(step);
  }
  if (const auto epoch = step / steps_in_epoch(); epoch != epoch_) {
    order_ = order_of(epoch);
    epoch_ = epoch;
  }
  const auto first = order_.begin() + step % steps_in_epoch() * options_.batch_size;
  const std::vector<int64_t> places(first, first + options_.batch_size);
  if (rows_) {
    return rows_at(places);
  }
  return pixels_ ? pixels_->read(examples, places)
                 : gradient::read_texts(examples, places, model_, reader_);
}

gradient::Labelled Batches::rows_at(const std::vector<int64_t>& places) const {
  const auto which = at::tensor(places, at::kLong);
  gradient::Labelled result{.wanted = rows_->wanted.index_select(0, which)};
  for (const auto& [name, tensor] : rows_->batch) {
    result.batch[name] = tensor.index_select(0, which);
  }
  return result;
}

gradient::Labelled Batches::next_images(int64_t step) {
  const auto place = step % steps_in_epoch();
  if (step != next_ || place == 0) {
    auto order = order_of(step / steps_in_epoch());
    order.erase(order.begin(), order.begin() + place * options_.batch_size);
    loader_ = std::make_unique<data::ImageLoader>(
        *portion_.examples, order, std::vector{reader_.images()}, options_.batch_size,
        options_.threads);
  }
  next_ = step + 1;
  const auto batch = loader_->next();
  require(batch.has_value(), "no image of a whole batch can be decoded");
  // The loader counts at its end, which an epoch's last steps may never reach.
  const auto& skipped = loader_->skipped();
  const auto most = data::ImageLoader::kMostSkipped * static_cast<double>(portion_.places.size());
  require(
      static_cast<double>(skipped.size()) <= most + 1e-6, skipped.size(), " of ",
      portion_.places.size(), " images cannot be read; expected at most 1 in 100. ",
      joined(skipped, 3));
  return {
      .batch = {{"pixel_values", batch->views.front()}},
      .labels = gradient::labels_of(*portion_.examples, batch->examples)};
}

std::vector<std::string> Batches::skipped() const {
  return pixels_ ? pixels_->skipped() : loader_ ? loader_->skipped() : std::vector<std::string>();
}

}  // namespace theseus::train
