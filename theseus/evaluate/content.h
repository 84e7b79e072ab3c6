#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "theseus/data/examples.h"
#include "theseus/model/model.h"

namespace theseus::evaluate {

// What tells inputs apart, wherever they lie: for the identity of what was made of them. All of it reads them whole.

// Of texts what they say, of images their bytes; of both their labels, and what these are called.
std::string hash_of_examples(const data::Examples& examples, const std::vector<int64_t>& places);

// Of data, NAME:PATH or a path: NAME, and the examples of these splits. Of a file of tensors, and where no split is
// said: what lies there, by names from there and contents.
nlohmann::ordered_json content_of(
    const std::string& words, const std::vector<std::string>& splits = {});

// Of a model: weights, config, and what lies beside them, as its tokenizer.
nlohmann::ordered_json content_of(const model::Model& model);

}  // namespace theseus::evaluate
