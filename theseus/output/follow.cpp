#include "theseus/output/follow.h"

#include "theseus/base/error.h"
#include "theseus/output/job_maps.h"
#include "theseus/output/opened.h"
#include "theseus/output/supervision.h"

namespace theseus::output {

void follow_job(const JobOptions& given, const transport::Watch& watch) {
  auto options = given;
  options.tuned.clear();
  options.out.clear();
  auto opened = open_all(options, watch);
  if (is_finished(options, false)) {
    return;
  }
  fix_memory(options, {});
  auto maps = find_maps(options, opened, {}, watch);
  run_once(*maps.aligner, {}, {}, {}, watch, options.save_every);
}

bool is_finished(const JobOptions& options, bool found) {
  return !options.align.processes->from_first(found ? "finished" : "").empty();
}

void require_shared(const JobOptions& options) {
  if (options.align.processes->alone()) {
    return;
  }
  const auto* what = !options.alignment.empty() ? "carrying through an --alignment"
                     : needs_labels(options)    ? "what learns from --labelled"
                                                : nullptr;
  require(
      what == nullptr, what == nullptr ? "" : what,
      " runs as one process: start it without a launcher (WORLD_SIZE is ",
      options.align.processes->size(), ")");
}

void add_processes(const JobOptions& options, nlohmann::ordered_json& record) {
  if (!options.align.processes->alone()) {
    record["processes"] = options.align.processes->size();
  }
}

}  // namespace theseus::output
