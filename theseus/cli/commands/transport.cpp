// theseus transport

#include "theseus/cli/command.h"
#include "theseus/cli/job_command.h"

namespace theseus::cli::commands {
namespace {

std::function<int()> add(CLI::App& app) {
  return add_job(app, TransportOptions::For::kTransport, output::transport_job);
}

}  // namespace

const Command& transport() {
  static const Command command = {
      .help = "carry a fine-tune from one base model to another", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
