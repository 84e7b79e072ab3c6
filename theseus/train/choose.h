#pragma once

#include <string>
#include <vector>

#include "theseus/model/model.h"
#include "theseus/train/head.h"

namespace theseus::train {

struct ChooseOptions {
  std::vector<std::string> freeze;  // filters; see filter.h
  std::vector<std::string> adapt;   // likewise, of linear layers that get LoRA; none: all in blocks
  bool low_rank = false;
};

// What is trained. A new head is always, and not listed here.
struct Choice {
  std::vector<std::string> tensors;  // as a whole, by their own names
  std::vector<std::string> modules;  // by LoRA
  int64_t frozen = 0;                // tensors of the model that stay
};

// Of a model of images and text that learns from images, the text tower is frozen. LoRA sits on linear
// layers of blocks that PEFT can adapt: modules of their own, and not OpenCLIP's attention, whose output
// layer it would pass by. Throws InputError for a filter that means nothing, and when nothing is left.
Choice choose_trained(
    const model::Architecture& architecture,
    bool images,
    const Head& head,
    const ChooseOptions& options);

}  // namespace theseus::train
