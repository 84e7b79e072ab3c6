// theseus transport

#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/summary.h"
#include "theseus/cli/transport_options.h"

namespace theseus::cli::commands {
namespace {

int run(const TransportOptions& options) {
  const c10::NoGradGuard no_gradients;
  const auto job = options.job();
  JobProgress progress(options.quiet);
  const auto record = output::transport_job(
      job, [&](double done, double all, const std::string& doing) { progress(done, all, doing); });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    fmt::print("{}", without_controls(result_text(record, job.out.string())));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<TransportOptions>();
  options->add(app, TransportOptions::For::kTransport);
  return [options] { return run(*options); };
}

}  // namespace

const Command& transport() {
  static const Command command = {
      .help = "carry a fine-tune from one base model to another", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
