#pragma once

#include <filesystem>
#include <vector>

namespace theseus::machine {

// Numbers of the processors that this process may run on.
std::vector<int> allowed_processors();

// How many cores they belong to: two may be the threads of one, and then do hardly more products than one.
// As many as processors where the system does not say. `root`: where it does.
int count_cores(
    const std::vector<int>& processors,
    const std::filesystem::path& root = "/sys/devices/system/cpu");

// Nominal rate of the processor's clock in Hz, as the system states it; 0 where it does not.
double clock_rate();

}  // namespace theseus::machine
