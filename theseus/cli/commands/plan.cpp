// theseus plan

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
  const auto record = output::plan_job(
      job, [&](double done, double all, const std::string& doing) { progress(done, all, doing); });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    fmt::print("{}", without_controls(plan_text(record, options.every)));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<TransportOptions>();
  options->add(app, TransportOptions::For::kPlan);
  return [options] { return run(*options); };
}

}  // namespace

const Command& plan() {
  static const Command command = {
      .help = "say what a transport would do to each parameter, and what it costs", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
