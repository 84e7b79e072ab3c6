#include "theseus/cli/job_command.h"

#include <memory>

#include <c10/core/GradMode.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/device.h"
#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/diagnose_text.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/progress.h"
#include "theseus/cli/summary.h"
#include "theseus/output/follow.h"

namespace theseus::cli {
namespace {

std::string text_of(
    const nlohmann::ordered_json& record,
    const output::JobOptions& given,
    bool every,
    TransportOptions::For command) {
  switch (command) {
    case TransportOptions::For::kPlan:
      return plan_text(record, every);
    case TransportOptions::For::kDiagnose:
      return diagnose_text(record);
    default:
      return result_text(record, given.out.string());
  }
}

}  // namespace

int run_job(const TransportOptions& options, TransportOptions::For command, Job job) {
  const c10::NoGradGuard no_gradients;
  const cluster::Processes processes(cluster::find_place());
  auto given = options.job();
  given.align.processes = &processes;
  output::require_shared(given);
  const auto device = given.words.value("device", "auto");
  if (!processes.alone() && given.placement.device.is_cuda() &&
      (device == "cuda" || device == "auto")) {
    given.placement.device = cuda_device_of(processes.rank_here());
  }
  if (processes.first() && !given.out.empty()) {
    say_what_is_kept({given.out});
  }
  JobProgress progress(options.quiet || !processes.first());
  const transport::Watch watch = [&](double done, double all, const std::string& doing) {
    progress(done, all, doing);
  };
  if (!processes.first()) {
    output::follow_job(given, watch);
    return kDone;
  }
  const auto record = job(given, watch);
  progress.finish();
  if (options.json) {
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else if (!options.quiet) {
    fmt::print("{}", without_controls(text_of(record, given, options.every, command)));
  }
  return kDone;
}

void require_one_process(std::string_view what) {
  const auto place = cluster::find_place();
  require(
      place.alone(), what, " runs as one process: start it without a launcher (WORLD_SIZE is ",
      place.size, ")");
}

std::function<int()> add_job(CLI::App& app, TransportOptions::For command, Job job) {
  auto options = std::make_shared<TransportOptions>();
  options->add(app, command);
  return [options, command, job] { return run_job(*options, command, job); };
}

}  // namespace theseus::cli
