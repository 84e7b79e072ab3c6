#pragma once

#include "theseus/gradient/loss.h"
#include "theseus/stats/calibration.h"

namespace theseus::stats {

// What the calibration's labels say of a model: by prompts where it brings features of class names, by
// tokens where it says which are wanted, else by the classes of the model's head. Throws InputError when
// there are no usable labels, or the model cannot be judged by them.
gradient::Loss loss_of(model::Model& model, const Calibration& calibration, Side side);

}  // namespace theseus::stats
