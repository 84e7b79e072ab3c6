// theseus transport

#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/job_command.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/summary.h"

namespace theseus::cli::commands {
namespace {

int run_several(const TransportOptions& options, const std::vector<output::JobOptions>& jobs) {
  require_one_process("transport with several --tuned");
  const c10::NoGradGuard no_gradients;
  std::vector<std::filesystem::path> outs;
  for (const auto& job : jobs) {
    outs.push_back(job.out);
  }
  say_what_is_kept(outs);
  JobProgress progress(options.quiet);
  const auto records = output::transport_jobs(
      jobs, [&](double done, double all, const std::string& doing) { progress(done, all, doing); });
  progress.finish();
  if (options.json) {
    const nlohmann::ordered_json record = {{"updates", records}};
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    fmt::print("{}", without_controls(several_text(records, jobs)));
  }
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<TransportOptions>();
  options->add(app, TransportOptions::For::kTransport);
  return [options] {
    const auto jobs = options->jobs();
    return jobs.empty()
               ? run_job(*options, TransportOptions::For::kTransport, output::transport_job)
               : run_several(*options, jobs);
  };
}

}  // namespace

const Command& transport() {
  static const Command command = {
      .help = "carry a fine-tune from one base model to another", .add = add, .several = true};
  return command;
}

}  // namespace theseus::cli::commands
