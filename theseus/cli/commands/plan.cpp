// theseus plan

#include "theseus/cli/command.h"
#include "theseus/cli/job_command.h"

namespace theseus::cli::commands {
namespace {

std::function<int()> add(CLI::App& app) {
  return add_job(app, TransportOptions::For::kPlan, output::plan_job);
}

}  // namespace

const Command& plan() {
  static const Command command = {
      .help = "say what a transport would do to each parameter, and what it costs", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
