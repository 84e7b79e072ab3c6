#pragma once

#include <string>
#include <vector>

#include "theseus/machine/environment.h"

namespace theseus::machine {

// What was found on this machine, as far as it tells whether the machine computes as fast as it can.
struct Findings {
  Processor processor;
  int processors = 1;        // that this process may use
  int cores = 1;             // that these belong to
  double clock = 0;          // Hz; 0: unknown
  std::string kernel;        // of OpenBLAS; empty: another library computes
  std::string named_kernel;  // what the user's OPENBLAS_CORETYPE says; empty: nothing
  bool openblas_has_own_threads = false;
  std::vector<Setting> unset;  // what the environment of this process should have said
  // Operations a second of one core in large products; 0: not measured.
  double float32 = 0;
  double float64 = 0;
  double bfloat16 = 0;
};

// What keeps it from that, each a sentence with the cure. Empty when all is well.
std::vector<std::string> warnings(const Findings& findings);

}  // namespace theseus::machine
