#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "theseus/data/examples.h"
#include "theseus/gradient/trainable.h"

namespace theseus::train {

// What a model answers with.
struct Head {
  enum class Kind {
    kKeep,      // its own: classes, or the tokens of a language model
    kZeroShot,  // CLIP's class prompts, through the frozen text tower
    kNew        // a new linear layer onto the data's classes
  };
  Kind kind = Kind::kKeep;
  // It lies beside a bare encoder, and reads the mean of its tokens; see output/sentence_head.h.
  bool beside = false;
  // Of one that is new or lies beside the model.
  std::string module = {};                // "classifier"
  int64_t width = 0;                      // that it reads
  std::vector<std::string> classes = {};  // it has, by name
  int64_t told = 0;                   // classes of one that is kept; 0: it tells tokens, or prompts
  int64_t replaced = 0;               // classes of the model's own head, whose place it takes
  at::Tensor weight = {}, bias = {};  // where it begins; undefined: at random

  // Whether the checkpoint has no tensors for it.
  bool added() const { return kind == Kind::kNew || beside; }
};

// "new", "zero-shot", "keep", or "" for what model and data are made for. Throws InputError for another
// word, and when this family cannot hold such a head or the model's own does not fit the data.
Head choose_head(
    const std::string& word, const model::Model& model, const data::Examples& examples);

// An added head's weight [c, d] and bias as leaves. Where they do not begin as something: normal with
// deviation 0.02, and 0.
void begin_head(const Head& head, uint64_t seed, gradient::Trainable& trainable);

}  // namespace theseus::train
