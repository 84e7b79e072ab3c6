// theseus diagnose

#include "theseus/output/diagnose.h"

#include "theseus/cli/command.h"
#include "theseus/cli/job_command.h"

namespace theseus::cli::commands {
namespace {

std::function<int()> add(CLI::App& app) {
  return add_job(app, TransportOptions::For::kDiagnose, output::diagnose_job);
}

}  // namespace

const Command& diagnose() {
  static const Command command = {
      .help = "say whether a transport will work, before hours are spent on it", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
