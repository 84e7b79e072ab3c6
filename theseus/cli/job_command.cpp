#include "theseus/cli/job_command.h"

#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/summary.h"

namespace theseus::cli {
namespace {

int run(const TransportOptions& options, TransportOptions::For command, Job job) {
  const c10::NoGradGuard no_gradients;
  const auto given = options.job();
  JobProgress progress(options.quiet);
  const auto record = job(given, [&](double done, double all, const std::string& doing) {
    progress(done, all, doing);
  });
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    const auto text = command == TransportOptions::For::kPlan
                          ? plan_text(record, options.every)
                          : result_text(record, given.out.string());
    fmt::print("{}", without_controls(text));
  }
  return kDone;
}

}  // namespace

std::function<int()> add_job(CLI::App& app, TransportOptions::For command, Job job) {
  auto options = std::make_shared<TransportOptions>();
  options->add(app, command);
  return [options, command, job] { return run(*options, command, job); };
}

}  // namespace theseus::cli
