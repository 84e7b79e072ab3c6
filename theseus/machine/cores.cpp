#include "theseus/machine/cores.h"

#include <cstdlib>
#include <fstream>
#include <sched.h>
#include <set>
#include <string>

namespace theseus::machine {

std::vector<int> allowed_processors() {
  std::vector<int> processors;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &allowed)) {
        processors.push_back(i);
      }
    }
  }
  return processors;
}

int count_cores(const std::vector<int>& processors, const std::filesystem::path& root) {
  std::set<std::string> cores;  // the list of a core's processors names the core
  for (const int processor : processors) {
    const auto directory = root / ("cpu" + std::to_string(processor)) / "topology";
    std::ifstream file(directory / "thread_siblings_list");
    std::string siblings;
    if (!std::getline(file, siblings)) {
      return static_cast<int>(processors.size());
    }
    cores.insert(siblings);
  }
  return static_cast<int>(cores.size());
}

double clock_rate() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("cpu MHz")) {
      return std::strtod(line.c_str() + line.find(':') + 1, nullptr) * 1e6;
    }
  }
  return 0;
}

}  // namespace theseus::machine
