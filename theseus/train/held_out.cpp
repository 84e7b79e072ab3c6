#include "theseus/train/held_out.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/evaluate/feed.h"
#include "theseus/train/memory.h"

namespace theseus::train {

HeldOut::HeldOut(
    Portion portion,
    model::Model& model,
    model::Reader& reader,
    const BatchOptions& options,
    int64_t most_rows,
    const Count& watch)
    : portion_(std::move(portion)), model_(model), reader_(reader), options_(options) {
  if (portion_.examples->image &&
      Pixels::bytes(portion_.places.size(), reader.images()) <= options.keep_bytes) {
    pixels_.emplace(*portion_.examples, portion_.places, reader.images(), options.threads, watch);
    skipped_ = pixels_->skipped();
  }
  if (options.pack > 0) {
    rows_ = with_context(
        "packing the texts that are held out (--validation names more of them, or none)", [&] {
          return gradient::read_packed(*portion_.examples, portion_.places, reader, options.pack);
        });
    if (most_rows > 0 && most_rows < rows_->size()) {
      rows_left_out_ = rows_->size() - most_rows;
      rows_ = rows_->part(0, most_rows);
    }
  }
}

int64_t HeldOut::size() const {
  return rows_ ? rows_->size() : std::ssize(portion_.places);
}

gradient::Measured HeldOut::measure(
    const gradient::Loss& loss, int64_t at_a_time, const Count& watch) {
  gradient::Measured all;
  int64_t done = 0;
  const auto add = [&](gradient::Labelled&& batch) {
    const auto part =
        gradient::measure(model_, loss, batch, sequences_at_a_time(at_a_time, model_, batch));
    all.loss += part.loss * static_cast<double>(part.count);
    all.count += part.count;
    all.right += part.right;
    watch(done += batch.size(), size());
  };
  const auto& examples = *portion_.examples;
  const auto& places = portion_.places;
  if (examples.image && !pixels_) {
    skipped_ = evaluate::feed(
        examples, places, reader_, {.batch_size = options_.batch_size, .threads = options_.threads},
        [&](evaluate::Step&& step) {
          add({.batch = std::move(step.batch), .labels = evaluate::labels_of(examples, step)});
        });
  } else if (rows_) {
    for (int64_t first = 0; first < rows_->size(); first += options_.batch_size) {
      add(rows_->part(first, std::min(options_.batch_size, rows_->size() - first)));
    }
  } else {
    const auto size = static_cast<size_t>(options_.batch_size);
    for (size_t first = 0; first < places.size(); first += size) {
      const std::vector<int64_t> some(
          places.begin() + static_cast<int64_t>(first),
          places.begin() + static_cast<int64_t>(std::min(places.size(), first + size)));
      add(pixels_ ? pixels_->read(examples, some)
                  : gradient::read_texts(examples, some, model_, reader_));
    }
  }
  all.loss /= static_cast<double>(std::max<int64_t>(all.count, 1));
  return all;
}

}  // namespace theseus::train
