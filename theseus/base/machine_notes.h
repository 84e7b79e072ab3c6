#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

namespace theseus {

// What a user of this machine should know of a job that computes there in this dtype: that its environment was not
// prepared (a process that the program theseus did not start), that half precision is slower. Empty when all is well.
std::vector<std::string> machine_notes(c10::Device device, c10::ScalarType dtype);

// Whether products take longer in this dtype than in float32 on this machine's CPU. Measured when it is first asked.
bool slower_than_float32(c10::ScalarType dtype);

}  // namespace theseus
