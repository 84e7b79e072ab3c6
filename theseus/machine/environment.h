#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "theseus/machine/processor.h"

namespace theseus::machine {

// The libraries that compute, as far as the settings depend on them.
struct Libraries {
  bool mkl = false;                // libtorch brings MKL; else it uses the system's BLAS
  bool onednn_knows_fp16 = false;  // oneDNN 2.7 and later
  std::string openblas;  // path of an OpenBLAS with OpenMP that may stand in for MKL; may be empty
};

// Those of this build.
Libraries built_with();

// One variable that the libraries read when they load or first compute.
struct Setting {
  std::string name;
  std::string value;
  std::string why;  // a sentence
  std::string
      yields;  // another variable that says the same: where the user has set it, this one stays unset
};

// What the environment should say on this processor. A pure function: nothing is read or set.
std::vector<Setting> settings_for(const Processor& processor, const Libraries& libraries);
// The same of the processor that this runs on and the libraries of this build.
std::vector<Setting> settings_here();

// Value of a variable, or nothing when it is unset.
using Lookup = std::function<std::optional<std::string>(const std::string& name)>;
std::optional<std::string> look_up(const std::string& name);

// Those that the environment leaves open. What the user set, to whatever value, is the user's.
std::vector<Setting> missing(const std::vector<Setting>& settings, const Lookup& lookup = look_up);

// For a program that is about to start another one with the libraries in it: sets what is missing, and
// THESEUS_SET to the names of it.
void set_missing();

// For a program that has loaded the libraries: sets what they read only when they first compute (the
// limit of oneDNN), so that a process that nobody prepared is slow but does not die.
void set_what_is_read_late();

// "OPENBLAS_CORETYPE=SkylakeX GOMP_SPINCOUNT=1000"
std::string assignments(const std::vector<Setting>& settings);

}  // namespace theseus::machine
