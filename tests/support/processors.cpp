#include "tests/support/processors.h"

#include <fstream>
#include <iterator>

#include "theseus/base/error.h"

namespace theseus::testing {

machine::CpuidDump recorded(const std::string& name) {
  std::ifstream file(std::string(THESEUS_SOURCE_DIR "/tests/fixtures/cpuid/") + name + ".txt");
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  require<InternalError>(!text.empty(), "there is no dump '", name, "'");
  return machine::parse_cpuid(text);
}

}  // namespace theseus::testing
