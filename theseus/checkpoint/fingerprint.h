#pragma once

#include <string>

#include "theseus/checkpoint/checkpoint.h"

namespace theseus::checkpoint {

// "xxh3:" and 32 hexadecimal digits of every tensor's name, dtype, shape and bytes, in the order of
// names: the same for the same tensors however they are split into files. Reads everything,
// once in a process for files that have not changed since.
std::string fingerprint(const Checkpoint& checkpoint);

}  // namespace theseus::checkpoint
