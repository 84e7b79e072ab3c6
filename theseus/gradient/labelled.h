#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/data/examples.h"
#include "theseus/model/reader.h"

namespace theseus::gradient {

constexpr int64_t kIgnored = -100;  // in Labelled::wanted: nothing is asked for here

// A batch and what the model should say to it: a class for each sequence, or the token that should
// come next at each place.
struct Labelled {
  model::Batch batch;
  at::Tensor labels;  // int64 [n], or undefined
  at::Tensor wanted;  // int64 [n, t], kIgnored where nothing is asked for; or undefined

  int64_t size() const;                               // sequences
  int64_t asked() const;                              // labels or tokens that are asked for
  Labelled part(int64_t first, int64_t count) const;  // some of the sequences; shares memory
};

// The labels of the examples at `places`. Throws InputError for unlabelled ones.
at::Tensor labels_of(
    const data::Examples& examples, const std::vector<int64_t>& places);  // int64 [n]

// Texts as the model takes them. A model with a decoder is asked for the answer; a causal one for the
// answer that follows the text or, where the wording has none, for the text itself; others for the class.
// Throws InputError when there is nothing to ask for.
Labelled read_texts(
    const data::Examples& examples,
    const std::vector<int64_t>& places,
    const model::Model& model,
    model::Reader& reader);

// Of a causal model, whose wording has an answer: rows of a text and its answer, and the answer's ids.
Labelled read_with_answers(
    const data::Examples& examples, const std::vector<int64_t>& places, model::Reader& reader);
// Of a causal model: texts, with their answers where the wording has one, end to end in rows of `length`
// ids (see Reader::packed), asked for as read_texts() does. Sequences are rows here, not examples; a row is
// one sequence to the model, in which a text also sees those before it. Rows without an answer are left out
// where answers are asked for.
Labelled read_packed(
    const data::Examples& examples,
    const std::vector<int64_t>& places,
    model::Reader& reader,
    int64_t length);
// Whether the model writes on from what it reads.
bool is_causal(const model::Model& model);

}  // namespace theseus::gradient
