#pragma once

#include <functional>
#include <string_view>

#include <CLI/CLI.hpp>

#include "theseus/base/plugin.h"

namespace theseus::cli {

// kAnswerIsNo: the command finished, and what it was asked is not so.
enum ExitCode { kDone = 0, kYourInput = 2, kNoTrustworthyNumber = 3, kOurBug = 4, kAnswerIsNo = 5 };

// A word on the command line: one file in cli/commands/. `add` declares the command's arguments on
// `app` and returns what to do once they are parsed; that returns the exit code.
struct Command {
  std::string_view help;
  std::function<int()> (*add)(CLI::App& app);
  bool several = false;  // whether processes of a launcher share out the work
};

// Every command in this build, sorted by name.
std::span<const Plugin<Command>> all_commands();

}  // namespace theseus::cli
