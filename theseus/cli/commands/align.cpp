// theseus align

#include "theseus/cli/command.h"
#include "theseus/cli/job_command.h"

namespace theseus::cli::commands {
namespace {

std::function<int()> add(CLI::App& app) {
  return add_job(app, TransportOptions::For::kAlign, output::align_job);
}

}  // namespace

const Command& align() {
  static const Command command = {
      .help = "learn how two base models correspond, once for any number of updates",
      .add = add,
      .several = true};
  return command;
}

}  // namespace theseus::cli::commands
