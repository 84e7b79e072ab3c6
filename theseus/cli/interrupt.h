#pragma once

#include <string>

#include "theseus/cli/command.h"

namespace theseus::cli {

// From now on a signal to end removes files that are half-written, says the words below and ends the process.
void catch_interrupts();

// Empty: nothing is said.
void say_when_interrupted(const std::string& words);

// "interrupted", and what the command keeps.
std::string interrupted_text(const Command& command);

}  // namespace theseus::cli
