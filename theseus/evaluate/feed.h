#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "theseus/data/examples.h"
#include "theseus/evaluate/task.h"
#include "theseus/model/reader.h"

namespace theseus::evaluate {

struct FeedOptions {
  int64_t batch_size = 32;
  int threads = 2;   // that decode images
  int64_t pack = 0;  // texts end to end in rows of so many ids; 0: one text a row
  // Of a causal model: it reads the answers, too, where the wording has them, and Step::answers are their ids.
  bool answers = false;
};

// Calls `take` with the examples of `order` as the model's inputs, batch by batch. Returns a message
// for every image that could not be decoded. Throws InputError when there are too many of these, or when
// the model takes no such input.
std::vector<std::string> feed(
    const data::Examples& examples,
    const std::vector<int64_t>& order,
    model::Reader& reader,
    const FeedOptions& options,
    const std::function<void(Step&&)>& take);

}  // namespace theseus::evaluate
