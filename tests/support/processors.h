#pragma once

#include <string>

#include "theseus/machine/processor.h"

namespace theseus::testing {

// tests/fixtures/cpuid/NAME.txt
machine::CpuidDump recorded(const std::string& name);

}  // namespace theseus::testing
