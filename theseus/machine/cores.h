#pragma once

#include <filesystem>
#include <vector>

namespace theseus::machine {

// Numbers of the processors that this process may run on.
std::vector<int> allowed_processors();

// Returns how many cores the processors belong to. Two processors may be the threads of one core, and together they
// compute hardly faster than one. Where the system does not say, every processor counts as a core. `root` is the
// directory in which the system says it.
int count_cores(
    const std::vector<int>& processors,
    const std::filesystem::path& root = "/sys/devices/system/cpu");

// Nominal rate of the processor's clock in Hz, as the system states it; 0 where it does not.
double clock_rate();

}  // namespace theseus::machine
