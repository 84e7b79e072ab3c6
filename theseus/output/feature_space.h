#pragma once

#include <string>

#include "theseus/model/family.h"

namespace theseus::output {

// The space of what stands for each image or text: the joint one of images and texts, else what the last norm of the
// tower that reads the inputs writes.
std::string feature_space(const model::Architecture& architecture);

}  // namespace theseus::output
