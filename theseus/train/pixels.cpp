#include "theseus/train/pixels.h"

#include <ATen/ATen.h>

#include "theseus/base/error.h"
#include "theseus/data/loader.h"

namespace theseus::train {

Pixels::Pixels(
    const data::Examples& examples,
    const std::vector<int64_t>& places,
    const data::Preprocessing& how,
    int threads,
    const Count& watch)
    : pixels_(at::empty({static_cast<int64_t>(places.size()), 3, how.height, how.width})),
      rows_(static_cast<size_t>(examples.size()), -1) {
  constexpr int64_t kAtATime = 32;
  data::ImageLoader loader(examples, places, {how}, kAtATime, threads);
  int64_t row = 0;
  while (const auto batch = loader.next()) {
    const auto count = static_cast<int64_t>(batch->examples.size());
    pixels_.narrow(0, row, count).copy_(batch->views.front());
    for (const auto place : batch->examples) {
      rows_[static_cast<size_t>(place)] = row++;
    }
    watch(row, static_cast<int64_t>(places.size()));
  }
  skipped_ = loader.skipped();
}

int64_t Pixels::bytes(size_t count, const data::Preprocessing& how) {
  return static_cast<int64_t>(count) * 3 * how.height * how.width *
         static_cast<int64_t>(sizeof(float));
}

gradient::Labelled Pixels::read(
    const data::Examples& examples, const std::vector<int64_t>& places) const {
  std::vector<int64_t> there, rows;
  for (const auto place : places) {
    if (const auto row = rows_[static_cast<size_t>(place)]; row >= 0) {
      there.push_back(place);
      rows.push_back(row);
    }
  }
  require(!there.empty(), "no image of a whole batch can be decoded");
  return {
      .batch = {{"pixel_values", pixels_.index_select(0, at::tensor(rows, at::kLong))}},
      .labels = gradient::labels_of(examples, there)};
}

}  // namespace theseus::train
